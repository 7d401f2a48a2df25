package optimistic_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/aztest"
)

// bareUpdate sends the requests of Update with the SDK alone, and promises nothing.
func bareUpdate(b *testing.B, client *blockblob.Client) {
	got, err := client.DownloadStream(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	data, err := io.ReadAll(got.Body)
	if err != nil {
		b.Fatal(err)
	}
	var c optest.Counter
	if err := json.Unmarshal(data, &c); err != nil {
		b.Fatal(err)
	}
	c.N++
	data, err = json.Marshal(c)
	if err != nil {
		b.Fatal(err)
	}
	_, err = client.Upload(b.Context(), streaming.NopCloser(strings.NewReader(string(data))), &blockblob.UploadOptions{
		Metadata:         got.Metadata,
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: got.ETag}},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkUpdate compares Update with the same two requests by the bare SDK, over a service in memory: the difference
// is azconc's own work.
func BenchmarkUpdate(b *testing.B) {
	for name, run := range map[string]func(b *testing.B, client *blockblob.Client){
		"bare SDK": bareUpdate,
		"azconc": func(b *testing.B, client *blockblob.Client) {
			if _, err := optimistic.Update(b.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
				b.Fatal(err)
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := aztest.New(nil)
			client := s.BlockBlob("box", "n.json")
			if _, err := client.Upload(b.Context(), optest.Body(`{"n":0}`), nil); err != nil {
				b.Fatal(err)
			}
			for range protocol.LineageSize { // both carry a full lineage along
				if _, err := optimistic.Update(b.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
					b.Fatal(err)
				}
			}
			s.Reset()
			b.ReportAllocs()
			for b.Loop() {
				run(b, client)
			}
			b.ReportMetric(float64(s.Requests())/float64(b.N), "requests/op")
		})
	}
}

// BenchmarkDocument folds what 64 goroutines do, against as many separate updates.
func BenchmarkDocument(b *testing.B) {
	for name, open := range map[string]bool{"document": true, "separate updates": false} {
		b.Run(name, func(b *testing.B) {
			s := aztest.New(nil)
			if _, err := s.BlockBlob("box", "n.json").Upload(b.Context(), optest.Body(`{"n":0}`), nil); err != nil {
				b.Fatal(err)
			}
			d, err := optimistic.NewDocument(blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), nil)
			if err != nil {
				b.Fatal(err)
			}
			s.Reset()
			b.SetParallelism(64)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				target := blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
				for pb.Next() {
					var err error
					if open {
						_, err = d.Update(b.Context(), optest.Increment)
					} else {
						_, err = optimistic.Update(b.Context(), target, optest.Increment, &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1})
					}
					if err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(s.Requests())/float64(b.N), "requests/op")
		})
	}
}
