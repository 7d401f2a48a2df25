package optimistic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// BenchmarkContention lets clients increment one counter on a real Azurite, which is one Node process: by azconc, and by a
// loop of SDK calls with full jitter. An operation is a commit, after four for each client, in which the clients settle:
//
//	scripts/bench -bench Contention/blob/8 -benchtime 3000x ./optimistic
func BenchmarkContention(b *testing.B) {
	for _, kind := range []string{"blob", "entity"} {
		for _, clients := range []int{8, 32, 128} {
			for _, loop := range []string{"full jitter", "azconc"} {
				b.Run(fmt.Sprintf("%s/%d/%s", kind, clients, loop), func(b *testing.B) { contention(b, kind, loop, clients) })
			}
		}
	}
}

// counted counts requests.
type counted struct {
	next policy.Transporter
	n    atomic.Int64
}

func (c *counted) Do(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.Do(r)
}

// incrementing is a client: each call makes one commit.
type incrementing func(ctx context.Context) error

func contention(b *testing.B, kind, loop string, clients int) {
	account := azuritetest.Account(b)
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	b.Cleanup(transport.CloseIdleConnections)
	sent := &counted{next: &http.Client{Transport: transport}}
	all := make([]incrementing, clients)
	name := fmt.Sprintf("n%d", rand.Int64())
	for i := range all {
		all[i] = incrementer(b, account, policy.ClientOptions{Transport: sent, Retry: policy.RetryOptions{MaxRetries: -1}}, kind, loop, name, i == 0)
	}
	// The clients never stop between the warm-up and the measurement: a common start would be another crowd.
	warm := min(b.N, 4*clients)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var requests int64
	var began time.Time
	commits, done := 0, make([]int, clients)
	for i, increment := range all {
		wg.Go(func() {
			for {
				if err := increment(b.Context()); err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				switch commits++; {
				case commits == warm:
					requests, began = -sent.n.Load(), time.Now()
					b.ResetTimer()
				case commits > warm && commits <= warm+b.N:
					done[i]++
				}
				if commits == warm+b.N {
					requests += sent.n.Load()
					b.StopTimer()
					b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "commits/s")
				}
				over := commits >= warm+b.N
				mu.Unlock()
				if over {
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
	b.ReportMetric(float64(slices.Min(done))*float64(clients)/float64(b.N), "least/mean")
}

// incrementer makes one client of the counter, which the first one creates.
func incrementer(b *testing.B, account azurite.Account, o policy.ClientOptions, kind, loop, name string, first bool) incrementing {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	options := &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1, Create: true}
	if kind == "entity" {
		credential, err := aztables.NewSharedKeyCredential(account.Name, account.Key)
		must(err)
		service, err := aztables.NewServiceClientWithSharedKey(account.TableURL, credential, &aztables.ClientOptions{ClientOptions: o})
		must(err)
		table := service.NewClient("contention")
		if first {
			_, _ = table.CreateTable(b.Context(), nil)
			_, err := table.UpsertEntity(b.Context(), fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q,"n":0}`, name), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
			must(err)
		}
		if loop == "azconc" {
			target := tables.NewEntity[optest.Counter](table, "p", name)
			return func(ctx context.Context) error {
				_, err := optimistic.Update(ctx, target, optest.Increment, options)
				return err
			}
		}
		return jittered(func(ctx context.Context) error { return tryEntity(ctx, table, name) })
	}
	credential, err := blob.NewSharedKeyCredential(account.Name, account.Key)
	must(err)
	client, err := blockblob.NewClientWithSharedKeyCredential(account.BlobURL+"/contention/"+name, credential, &blockblob.ClientOptions{ClientOptions: o})
	must(err)
	if first {
		box, err := container.NewClientWithSharedKeyCredential(account.BlobURL+"/contention", credential, &container.ClientOptions{ClientOptions: o})
		must(err)
		_, _ = box.Create(b.Context(), nil)
		_, err = client.Upload(b.Context(), optest.Body(`{"n":0}`), nil)
		must(err)
	}
	if loop == "azconc" {
		target := blobs.NewJSON[optest.Counter](client)
		return func(ctx context.Context) error {
			_, err := optimistic.Update(ctx, target, optest.Increment, options)
			return err
		}
	}
	return jittered(func(ctx context.Context) error { return tryBlob(ctx, client) })
}

// jittered is the loop that a careful program without azconc uses: full jitter from 5 ms, doubling, to 200 ms.
func jittered(try func(context.Context) error) incrementing {
	return func(ctx context.Context) error {
		for n := 0; ; n++ {
			err := try(ctx)
			if err == nil || azerr.Classify(err).Kind != azerr.Conflict {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(rand.Float64() * float64(min(200*time.Millisecond, 5*time.Millisecond<<min(n, 10))))):
			}
		}
	}
}

func tryBlob(ctx context.Context, client *blockblob.Client) error {
	got, err := client.DownloadStream(ctx, nil)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	var c optest.Counter
	if err := json.NewDecoder(got.Body).Decode(&c); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, got.Body)
	_, err = client.Upload(ctx, optest.Body(fmt.Sprintf(`{"n":%d}`, c.N+1)), &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: got.ETag}},
	})
	return err
}

func tryEntity(ctx context.Context, table *aztables.Client, row string) error {
	got, err := table.GetEntity(ctx, "p", row, nil)
	if err != nil {
		return err
	}
	var c optest.Counter
	if err := json.Unmarshal(got.Value, &c); err != nil {
		return err
	}
	etag := got.ETag
	_, err = table.UpdateEntity(ctx, fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q,"n":%d}`, row, c.N+1), &aztables.UpdateEntityOptions{IfMatch: &etag, UpdateMode: aztables.UpdateModeReplace})
	return err
}
