//go:build unix

package optimistic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
)

// page is the document of the benchmarks: a number that each update counts up, and items that make its size.
type page struct {
	N     int    `json:"n"`
	Items []item `json:"items"`
}

type item struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"`
	Price float64  `json:"price"`
	Count int      `json:"count"`
	Tags  []string `json:"tags"`
}

// pageOf returns a document of about size bytes.
func pageOf(size int) page {
	var p page
	for n := 20; n < size; n += 98 {
		i := len(p.Items)
		p.Items = append(p.Items, item{ID: fmt.Sprintf("id-%08d", i), Name: "an item of the page", Price: float64(i%1000) + 0.25, Count: i % 90, Tags: []string{"red", "green"}})
	}
	return p
}

// bareBlob reads a blob and writes it back by the SDK alone, on the condition of its ETag, and keeps its metadata and type.
func bareBlob(ctx context.Context, client *blockblob.Client, change func([]byte) ([]byte, error)) error {
	got, err := client.DownloadStream(ctx, nil)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		return err
	}
	if data, err = change(data); err != nil {
		return err
	}
	_, err = client.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), &blockblob.UploadOptions{
		Metadata:         got.Metadata,
		HTTPHeaders:      &blob.HTTPHeaders{BlobContentType: got.ContentType},
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: got.ETag}},
	})
	return err
}

func turn(data []byte) []byte { data[len(data)/2]++; return data }

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// pair is an update by the SDK alone and by azconc.
type pair struct {
	name         string
	prepare      func(tb testing.TB)
	bare, azconc func(ctx context.Context) error
}

type person struct {
	Name    string    `json:"Name"`
	N       int       `json:"N"`
	Total   int64     `json:"Total,string"`
	Rate    float64   `json:"Rate"`
	Active  bool      `json:"Active"`
	Since   time.Time `json:"Since"`
	Comment string    `json:"Comment"`
}

func pairs(s *aztest.Service, short bool) []pair {
	var out []pair
	sizes := []int{1 << 10, 64 << 10, 1 << 20, 64 << 20}
	if short {
		sizes = sizes[:3]
	}
	for _, size := range sizes {
		name := fmt.Sprintf("%dKiB", size>>10)
		client := s.BlockBlob("box", "json"+name)
		out = append(out, pair{"json/" + name, func(tb testing.TB) { put(tb, client, jsonOf(tb, size)) }, func(ctx context.Context) error {
			return bareBlob(ctx, client, func(data []byte) ([]byte, error) {
				var p page
				if err := json.Unmarshal(data, &p); err != nil {
					return nil, err
				}
				p.N++
				return json.Marshal(p)
			})
		}, func(ctx context.Context) error {
			_, err := optimistic.Update(ctx, blobs.NewJSON[page](client), func(_ context.Context, p *page) error { p.N++; return nil }, nil)
			return err
		}})
		bytesClient := s.BlockBlob("box", "bytes"+name)
		out = append(out, pair{"bytes/" + name, func(tb testing.TB) { put(tb, bytesClient, bytes.Repeat([]byte("abcdefgh"), size/8)) }, func(ctx context.Context) error {
			return bareBlob(ctx, bytesClient, func(data []byte) ([]byte, error) { return turn(data), nil })
		}, func(ctx context.Context) error {
			_, err := optimistic.Update(ctx, blobs.NewBytes(bytesClient), func(_ context.Context, p *[]byte) error { *p = turn(*p); return nil }, nil)
			return err
		}})
	}
	table := s.Table("people")
	out = append(out, pair{"entity", func(tb testing.TB) {
		ann := person{Name: "Ann", Total: 1 << 40, Rate: 0.5, Since: time.Unix(1e9, 0).UTC(), Comment: strings.Repeat("x", 100)}
		if _, err := tables.Upsert(tb.Context(), tables.NewEntity[person](table, "p", "r"), ann, nil); err != nil {
			tb.Fatal(err)
		}
	}, func(ctx context.Context) error {
		got, err := table.GetEntity(ctx, "p", "r", nil)
		if err != nil {
			return err
		}
		var e struct {
			aztables.Entity
			person
			Lineage string `json:"azconclineage,omitempty"`
		}
		if err := json.Unmarshal(got.Value, &e); err != nil {
			return err
		}
		e.N++
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = table.UpdateEntity(ctx, data, &aztables.UpdateEntityOptions{IfMatch: &got.ETag, UpdateMode: aztables.UpdateModeMerge})
		return err
	}, func(ctx context.Context) error {
		_, err := optimistic.Update(ctx, tables.NewEntity[person](table, "p", "r"), func(_ context.Context, p *person) error { p.N++; return nil }, nil)
		return err
	}})
	return out
}

func jsonOf(tb testing.TB, size int) []byte {
	data, err := json.Marshal(pageOf(size))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func put(tb testing.TB, client *blockblob.Client, data []byte) {
	if _, err := client.Upload(tb.Context(), streaming.NopCloser(bytes.NewReader(data)), nil); err != nil {
		tb.Fatal(err)
	}
}

// ready prepares the resource, with a full lineage unless that takes long: both sides carry it along.
func (p pair) ready(tb testing.TB) {
	tb.Helper()
	p.prepare(tb)
	for range protocol.LineageSize {
		if err := p.azconc(tb.Context()); err != nil {
			tb.Fatal(err)
		}
		if strings.HasSuffix(p.name, "024KiB") || strings.Contains(p.name, "65536KiB") { // the lineage hardly counts
			return
		}
	}
}

// BenchmarkFloor compares Update with the same two requests by the bare SDK.
func BenchmarkFloor(b *testing.B) {
	s := aztest.New(nil)
	for _, p := range pairs(s, testing.Short()) {
		for _, side := range []struct {
			name string
			run  func(context.Context) error
		}{{"bare", p.bare}, {"azconc", p.azconc}} {
			b.Run(p.name+"/"+side.name, func(b *testing.B) {
				p.ready(b)
				b.ReportAllocs()
				s.Reset()
				n, requests := 0, 0
				began := cpuTime()
				for b.Loop() {
					if err := side.run(b.Context()); err != nil {
						b.Fatal(err)
					}
					if n++; n%100 == 0 {
						requests += s.Requests()
						s.Reset()
					}
				}
				b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
				b.ReportMetric(float64(requests+s.Requests())/float64(b.N), "requests/op")
			})
		}
	}
}

// BenchmarkOverhead runs both sides of BenchmarkFloor in turns, so that a busy machine slows both down alike, and reports
// their ratios: of the processor time, by the fastest eighth of the rounds, and of the memory and the allocations.
func BenchmarkOverhead(b *testing.B) {
	s := aztest.New(nil)
	for _, p := range pairs(s, testing.Short()) {
		if strings.Contains(p.name, "65536KiB") {
			continue // BenchmarkFloor shows it
		}
		b.Run(p.name, func(b *testing.B) {
			p.ready(b)
			sides := []func(context.Context) error{p.bare, p.azconc}
			var cpu [2][]float64
			var before, after runtime.MemStats
			var bytes, allocs [2]float64
			batch := 1
			n := 0
			for b.Loop() {
				for side, run := range sides {
					s.Reset()
					runtime.ReadMemStats(&before)
					began := cpuTime()
					for range batch {
						if err := run(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
					spent := cpuTime() - began
					runtime.ReadMemStats(&after)
					if n++; n <= 2 {
						batch = max(1, int(2*time.Millisecond/max(spent, 1)))
						continue
					}
					cpu[side] = append(cpu[side], float64(spent)/float64(batch))
					bytes[side] += float64(after.TotalAlloc-before.TotalAlloc) / float64(batch)
					allocs[side] += float64(after.Mallocs-before.Mallocs) / float64(batch)
				}
			}
			if len(cpu[0]) == 0 {
				return
			}
			rounds := float64(len(cpu[0]))
			for side := range cpu {
				slices.Sort(cpu[side])
				fast := cpu[side][:(len(cpu[side])+7)/8]
				sum := 0.0
				for _, t := range fast {
					sum += t
				}
				cpu[side][0] = sum / float64(len(fast))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(cpu[0][0]/1000, "bare-cpu-us/op")
			b.ReportMetric(cpu[1][0]/1000, "cpu-us/op")
			b.ReportMetric(cpu[1][0]/cpu[0][0], "x-cpu")
			b.ReportMetric(bytes[1]/bytes[0], "x-bytes")
			b.ReportMetric((allocs[1]-allocs[0])/rounds, "more-allocs/op")
		})
	}
}
