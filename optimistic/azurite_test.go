package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// onAzurite returns a maker of clients, each with its own pipeline, for blobs in a container of a real Azurite. endpoint
// is the account's, or a proxy's.
func onAzurite(t *testing.T, account azurite.Account, endpoint string) func(name string) *blockblob.Client {
	t.Helper()
	credential, err := container.NewSharedKeyCredential(account.Name, account.Key)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	options := policy.ClientOptions{Transport: &http.Client{Transport: transport}}
	c, err := container.NewClientWithSharedKeyCredential(account.BlobURL+"/box", credential, &container.ClientOptions{ClientOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Create(t.Context(), nil)
	return func(name string) *blockblob.Client {
		client, err := blockblob.NewClientWithSharedKeyCredential(endpoint+"/box/"+name, credential, &blockblob.ClientOptions{ClientOptions: options})
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
}

// TestContendersOnAzurite lets separate clients increment one counter on a real server, which is one Node process: the
// round trip that the waits are made of is mostly queueing there.
func TestContendersOnAzurite(t *testing.T) {
	account := azuritetest.Account(t)
	client := onAzurite(t, account, account.BlobURL)
	for clients, atMost := range map[int]float64{8: 3.5, 32: 5} {
		if testing.Short() && clients == 32 {
			continue // ten seconds
		}
		t.Run(fmt.Sprint(clients), func(t *testing.T) {
			name := fmt.Sprintf("n%d.json", clients)
			optest.Put(t, client(name), `{"n":0}`)
			const each = 4
			var mu sync.Mutex
			var wg sync.WaitGroup
			requests := 0
			for range clients {
				wg.Go(func() {
					target := blobs.NewJSON[optest.Counter](client(name))
					for range each {
						res, err := optimistic.Update(t.Context(), target, optest.Increment, &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1})
						mu.Lock()
						requests += res.Requests
						mu.Unlock()
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if got := optest.Count(t, client(name)); got != clients*each {
				t.Errorf("n = %d, want %d", got, clients*each)
			}
			perCommit := float64(requests) / float64(clients*each)
			t.Logf("%d clients: %.2f requests per commit (%.1f is the aim)", clients, perCommit, atMost)
			// How many depends on how busy the machine is. The plain loop needs twice as many as there are clients on any.
			if perCommit > float64(clients) {
				t.Errorf("%.2f requests per commit, want about %.1f, and %d at the most", perCommit, atMost, clients)
			}
		})
	}
}

// TestLostResponsesOnAzurite puts a real server behind a network that loses one response in five.
func TestLostResponsesOnAzurite(t *testing.T) {
	account := azuritetest.Account(t)
	target, err := url.Parse(account.BlobURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := aztest.NewProxy(target, 1, aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.2})
	defer proxy.Close()
	server := httptest.NewServer(proxy.Handler())
	defer server.Close()
	direct := onAzurite(t, account, account.BlobURL)
	lossy := onAzurite(t, account, server.URL+target.Path)
	optest.Put(t, direct("n.json"), `{"n":0}`)
	var mu sync.Mutex
	var wg sync.WaitGroup
	success, unknown, resolved := 0, 0, 0
	updates := 30
	if testing.Short() {
		updates = 12
	}
	for range 4 {
		wg.Go(func() {
			t0 := blobs.NewJSON[optest.Counter](lossy("n.json"))
			for range updates {
				res, err := optimistic.Update(context.Background(), t0, optest.Increment, &optimistic.UpdateOptions{Attempts: -1, Elapsed: time.Minute})
				mu.Lock()
				resolved += res.Resolved
				switch {
				case err == nil:
					success++
				case errors.Is(err, optimistic.ErrOutcomeUnknown):
					unknown++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if got := optest.Count(t, direct("n.json")); got < success || got > success+unknown || resolved == 0 {
		t.Errorf("n = %d after %d successes and %d unknown; %d lost responses resolved", got, success, unknown, resolved)
	}
	t.Logf("%d successes, %d unknown, %d lost responses resolved", success, unknown, resolved)
}

// TestEverythingElseSurvivesOnAzurite is its namesake on a real server.
func TestEverythingElseSurvivesOnAzurite(t *testing.T) {
	account := azuritetest.Account(t)
	client := onAzurite(t, account, account.BlobURL)("n.json")
	_, err := client.Upload(t.Context(), optest.Body(`{"n":1}`), &blockblob.UploadOptions{
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: new("application/vnd.team+json"), BlobCacheControl: new("no-cache")},
		Metadata:    map[string]*string{"owner": new("team a")},
		Tags:        map[string]string{"state": "ready"},
	})
	if err != nil {
		t.Fatal(err)
	}
	res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
	if err != nil || res.Requests != 3 {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	props, err := client.GetProperties(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	metadata, lineage := meta.Split(props.Metadata)
	tags, err := client.GetTags(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if *props.ContentType != "application/vnd.team+json" || *props.CacheControl != "no-cache" || metadata["owner"] != "team a" || len(metadata) != 1 ||
		len(tags.BlobTagSet) != 1 || *tags.BlobTagSet[0].Value != "ready" || len(lineage.Writes) != 1 {
		t.Errorf("%v %v %v %v %v", *props.ContentType, *props.CacheControl, metadata, tags.BlobTagSet, lineage)
	}
}
