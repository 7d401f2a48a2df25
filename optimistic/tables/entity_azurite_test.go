package tables

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// tableOnAzurite returns a maker of clients for one table of a real Azurite. endpoint is the account's, or a proxy's.
func tableOnAzurite(t *testing.T, account azurite.Account, endpoint string) func() *aztables.Client {
	t.Helper()
	credential, err := aztables.NewSharedKeyCredential(account.Name, account.Key)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	options := &aztables.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: transport}}}
	direct, err := aztables.NewServiceClientWithSharedKey(account.TableURL, credential, options)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = direct.CreateTable(t.Context(), "orders", nil)
	service, err := aztables.NewServiceClientWithSharedKey(endpoint, credential, options)
	if err != nil {
		t.Fatal(err)
	}
	return func() *aztables.Client { return service.NewClient("orders") }
}

// lossyTable returns clients as tableOnAzurite, behind a network that loses one response to a write in five.
func lossyTable(t *testing.T, account azurite.Account) func() *aztables.Client {
	target, err := url.Parse(account.TableURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := aztest.NewProxy(target, 1, aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.2})
	t.Cleanup(proxy.Close)
	server := httptest.NewServer(proxy.Handler())
	t.Cleanup(server.Close)
	return tableOnAzurite(t, account, server.URL+target.Path)
}

// TestTypesSurviveOnAzurite is TestPropertiesThatTDoesNotNameAreKept on a real server.
func TestTypesSurviveOnAzurite(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	account := azuritetest.Account(t)
	client := tableOnAzurite(t, account, account.TableURL)()
	optest.Insert(t, client, "r", `{"n":1,"N":7,`+everyType[1:])
	before, _ := stored(t, client, "r")
	before["n"] = Property{EDMInt32, "3"}
	for _, mode := range []Mode{MergeChanges, ReplaceWhole} {
		target := NewEntity[optest.Counter](client, "p", "r")
		target.Mode = mode
		if res, err := optimistic.Update(t.Context(), target, optest.Increment, nil); err != nil || res.Requests != 2 {
			t.Fatalf("Update = %+v, %v", res, err)
		}
	}
	after, state := stored(t, client, "r")
	// Azurite spells a small Double in its own way; the value is the same.
	before["tiny"], after["tiny"] = Property{EDMDouble, "1e-7"}, Property{EDMDouble, after["tiny"].Value}
	if diff := cmp.Diff(before, after); diff != "" || len(state.Lineage.Writes) != 2 {
		t.Errorf("%v (-want +got):\n%s", state.Lineage, diff)
	}
}

func TestKeysNeedNoEscapingOnAzurite(t *testing.T) {
	account := azuritetest.Account(t)
	client := tableOnAzurite(t, account, account.TableURL)()
	for _, key := range []string{"o'brien", "''", "a b+c%20d&e=f", "ümläut"} {
		target := NewEntity[optest.Counter](client, key, key)
		if _, err := optimistic.Create(t.Context(), target, optest.Counter{N: 1}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := optimistic.Update(t.Context(), target, optest.Increment, nil); err != nil {
			t.Error(err)
		}
		if v, err := optimistic.Read(t.Context(), target, nil); err != nil || v.Value.N != 2 {
			t.Errorf("%q: %+v, %v", key, v, err)
		}
	}
}

func TestContendersForAnEntityOnAzurite(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	account := azuritetest.Account(t)
	client := tableOnAzurite(t, account, account.TableURL)
	optest.Insert(t, client(), "r", `{"n":0}`)
	var wg sync.WaitGroup
	const writers, each = 8, 10
	for range writers {
		wg.Go(func() {
			target := NewEntity[optest.Counter](client(), "p", "r")
			for range each {
				if _, err := optimistic.Update(context.Background(), target, optest.Increment, &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := optest.Number(t, client(), "r"); got != writers*each {
		t.Errorf("n = %d, want %d", got, writers*each)
	}
}

func TestLostResponsesOfEntitiesOnAzurite(t *testing.T) {
	account := azuritetest.Account(t)
	direct, lossy := tableOnAzurite(t, account, account.TableURL), lossyTable(t, account)
	optest.Insert(t, direct(), "r", `{"n":0}`)
	var mu sync.Mutex
	var wg sync.WaitGroup
	success, unknown, resolved := 0, 0, 0
	for range 4 {
		wg.Go(func() {
			target := NewEntity[optest.Counter](lossy(), "p", "r")
			for range 20 {
				res, err := optimistic.Update(context.Background(), target, optest.Increment, &optimistic.UpdateOptions{Attempts: -1, Elapsed: time.Minute})
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
	if got := optest.Number(t, direct(), "r"); got < success || got > success+unknown || resolved == 0 {
		t.Errorf("n = %d after %d successes and %d unknown; %d lost responses resolved", got, success, unknown, resolved)
	}
}
