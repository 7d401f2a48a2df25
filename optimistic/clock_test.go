package optimistic_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// intermediary changes the responses on their way to the client.
type intermediary struct {
	next   policy.Transporter
	change func(*http.Request, *http.Response) *http.Response
}

func (i intermediary) Do(r *http.Request) (*http.Response, error) {
	resp, err := i.next.Do(r)
	if err != nil {
		return nil, err
	}
	return i.change(r, resp), nil
}

// behind returns a client of box/n.json whose responses an intermediary changes.
func behind(t *testing.T, s *aztest.Service, change func(*http.Request, *http.Response) *http.Response) *blockblob.Client {
	t.Helper()
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := blockblob.NewClientWithSharedKeyCredential(s.BlobURL()+"/box/n.json", credential,
		&blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: intermediary{s, change}}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestADateThatIsNotTheServicesProvesNothing: a proxy puts its own Date, which is a minute ahead, on the service's
// responses. Then a write looked older than it was, and a foreign write over it passed for one that came before: it was
// applied twice.
func TestADateThatIsNotTheServicesProvesNothing(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"ahead": time.Minute, "behind": -time.Minute, "right": 0} {
		t.Run(name, func(t *testing.T) {
			bothDates(t, `{"n":0}`, func(t *testing.T, s *aztest.Service, theirs *blockblob.Client) {
				bubble.Sleep(time.Hour)
				ours := behind(t, s, func(_ *http.Request, r *http.Response) *http.Response {
					if ahead != 0 {
						r.Header.Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
					}
					return r
				})
				s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
				go func() {
					bubble.Sleep(time.Microsecond)
					optest.Put(t, theirs, `{"n":100}`)
				}()
				_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](ours), optest.Increment, nil)
				if !errors.Is(err, optimistic.ErrOutcomeUnknown) {
					t.Errorf("err = %v, want unknown", err)
				}
				if got := optest.Count(t, theirs); got != 100 {
					t.Errorf("n = %d: it was applied again", got)
				}
			})
		})
	}
}

// TestAnOldVersionFromACacheProvesNothing: a cache answers the look after a lost response with a version that is older
// than the one written to. It was taken for one that was written since, and the write was applied twice.
func TestAnOldVersionFromACacheProvesNothing(t *testing.T) {
	bothDates(t, `{"n":0}`, func(t *testing.T, s *aztest.Service, theirs *blockblob.Client) {
		var cached *http.Response
		looks := 0
		ours := behind(t, s, func(r *http.Request, resp *http.Response) *http.Response {
			if r.Method != http.MethodHead {
				return resp
			}
			looks++
			if !slices.Contains(r.Header["Cache-Control"], "no-cache") && !slices.Contains(r.Header["cache-control"], "no-cache") {
				t.Errorf("a look without no-cache: %v", r.Header)
			}
			old := *cached
			old.Header = cached.Header.Clone()
			old.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
			return &old
		})
		seen := behind(t, s, func(_ *http.Request, resp *http.Response) *http.Response {
			cached = resp
			return resp
		})
		if _, err := seen.GetProperties(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(time.Minute)
		optest.Put(t, theirs, `{"n":50}`)
		bubble.Sleep(time.Minute)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](ours), optest.Increment, nil)
		if err != nil && !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("err = %v", err)
		}
		if got := optest.Count(t, theirs); got != 51 || looks == 0 {
			t.Errorf("n = %d after %d looks: it was applied twice", got, looks)
		}
	})
}

// TestAnOldResourceFromACacheRefusesNoCreate: a cache answers the look after a lost response with the resource that was deleted before
// the create. The error was ErrExists, although the create was applied.
func TestAnOldResourceFromACacheRefusesNoCreate(t *testing.T) {
	for name, stale := range map[string]int{"once": 1, "always": 1000} {
		t.Run(name, func(t *testing.T) {
			bothDates(t, `{"n":0}`, func(t *testing.T, s *aztest.Service, theirs *blockblob.Client) {
				target := blobs.NewJSON[optest.Counter](theirs)
				_, deleted := optimistic.Delete(t.Context(), target, optimistic.State{}, nil)
				if _, err := optimistic.Create(t.Context(), target, optest.Counter{}, nil); err != nil || deleted != nil {
					t.Fatal(deleted, err)
				}
				var cached *http.Response
				seen := behind(t, s, func(_ *http.Request, resp *http.Response) *http.Response { cached = resp; return resp })
				if _, err := seen.GetProperties(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if _, err := optimistic.Delete(t.Context(), target, optimistic.State{}, nil); err != nil {
					t.Fatal(err)
				}
				bubble.Sleep(time.Minute)
				looks := 0
				ours := behind(t, s, func(r *http.Request, resp *http.Response) *http.Response {
					if r.Method != http.MethodHead {
						return resp
					}
					if looks++; looks > stale {
						return resp
					}
					old := *cached
					old.Header = cached.Header.Clone()
					old.Header.Set("Age", "60")
					return &old
				})
				s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
				_, err := optimistic.Create(t.Context(), blobs.NewJSON[optest.Counter](ours), optest.Counter{N: 7}, nil)
				if known := name == "once"; known && err != nil || !known && !errors.Is(err, optimistic.ErrOutcomeUnknown) {
					t.Errorf("err = %v", err)
				}
				if got := optest.Count(t, theirs); got != 7 || looks == 0 {
					t.Errorf("n = %d after %d looks", got, looks)
				}
			})
		})
	}
}
