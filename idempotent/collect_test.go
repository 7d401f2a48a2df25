package idempotent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

// collecting counts the requests of the collection: queries, and transactions that delete.
type collecting struct {
	requests atomic.Int64
	behind   time.Duration // of the service's clock
}

func (c *collecting) Do(r *policy.Request) (*http.Response, error) {
	switch body := r.Body(); {
	case r.Raw().Method == http.MethodGet && strings.Contains(r.Raw().URL.RawQuery, "expires"):
		c.requests.Add(1)
	case body != nil:
		text, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		if err := r.RewindBody(); err != nil {
			return nil, err
		}
		if bytes.Contains(text, []byte("DELETE http")) {
			c.requests.Add(1)
		}
	}
	resp, err := r.Next()
	if err == nil && c.behind > 0 {
		resp.Header.Set("Date", time.Now().Add(-c.behind).UTC().Format(http.TimeFormat))
	}
	return resp, err
}

// markersFor returns markers whose collection is counted.
func (r *rig) markersFor(c *collecting, o *MarkersOptions) *Markers {
	r.t.Helper()
	key, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	client := r.service.ClientOptions()
	client.PerRetryPolicies = append(client.PerRetryPolicies, Policy(), c)
	table, err := aztables.NewClientWithSharedKey(r.service.TableURL()+"/markers", key, &aztables.ClientOptions{ClientOptions: client})
	if err != nil {
		r.t.Fatal(err)
	}
	k, err := NewMarkers(table, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// begin runs a consumer of the markers, and returns what stops it.
func (r *rig) begin(k *Markers) (stop func()) {
	c := r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: k, Poll: retry.Backoff{Cap: 5 * time.Minute}})
	ctx, cancel := context.WithCancel(r.t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if err := c.Run(ctx); err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
	return func() { cancel(); all.Wait() }
}

// dated returns a UUID of version 7. uuid.NewV7 never returns an earlier time than before, and the time of a bubble begins again.
func dated(n int) string {
	ms := time.Now().UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, n)
}

// TestMarkersAreBoundedByRetentionNotByAge: for 30 days, 12 with -short, a consumer handles messages under ids that have a date and ids that have none.
// There are never more markers than those of the days for which they are kept, and two days; the collection costs at most a hundredth
// of the requests, and deletes no marker before its day.
func TestMarkersAreBoundedByRetentionNotByAge(t *testing.T) {
	until := 30
	if testing.Short() {
		until = 12
	}
	if underRace {
		until = 4
	}
	inBubble(t, func(t *testing.T, r *rig) {
		const perDay, keep = 200, 24 * time.Hour
		const days = int((keep + 7*24*time.Hour + markers.Slack) / (24 * time.Hour))
		var spent collecting
		stop := r.begin(r.markersFor(&spent, &MarkersOptions{Keep: keep}))
		most, total := 0, 0
		for day := range until {
			r.service.Reset()
			for i := range perDay {
				id := fmt.Sprintf("%d-%d", day, i)
				if i%2 == 0 {
					id = dated(i)
				}
				r.send(id)
				if i%20 == 19 {
					pass(24 * time.Hour / perDay * 20)
				}
			}
			total += r.service.Requests()
			there := r.remembered("markers")
			if most = max(most, there); there < min(day+1, days)*perDay {
				t.Errorf("day %d: %d markers, and %d have not expired", day, there, min(day+1, days)*perDay)
			}
		}
		stop()
		cost := spent.requests.Load()
		t.Logf("%d markers at most; the collection has sent %d of %d requests", most, cost, total)
		if limit := (days + 2) * perDay; most > limit {
			t.Errorf("%d markers at most, want %d: those of %d days and two more", most, limit, days)
		}
		if share := float64(cost) / float64(total); share > 0.01 || cost == 0 {
			t.Errorf("the collection has sent %d of %d requests", cost, total)
		}
	})
}

// TestWhatGoesWrongWhileMarkersAreCollectedIsOnlyReported: whatever comes back from the requests of the collection, the messages are handled, the
// consumer goes on, and a later step deletes what is left.
func TestWhatGoesWrongWhileMarkersAreCollectedIsOnlyReported(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.Throttle, aztest.Page, aztest.PageAfterCommit, aztest.Truncate, aztest.Refuse} {
		for _, op := range []string{"Query Entities", "Entity Group Transaction"} {
			t.Run(fmt.Sprint(kind, " ", op), func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					var spent collecting
					k := r.markersFor(&spent, nil)
					stop := r.begin(k)
					r.send("a", "b", "c")
					pass(time.Minute)
					stop()
					pass(16 * 24 * time.Hour)
					r.events = nil
					r.service.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op(op), Count: 4})
					c := r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: k})
					c.settling = t.Context()
					for range 10 {
						c.sweepNow(t.Context())
					}
					if got := r.remembered("markers"); got != 0 {
						t.Errorf("%d markers are left", got)
					}
					for _, e := range r.events {
						if e.Kind != observe.Failed || !strings.Contains(e.Err.Error(), "expired markers are not deleted") {
							t.Errorf("%v: %v", e.Kind, e.Err)
						}
					}
				})
			})
		}
	}
}

// TestJobsThatEndWhenTheQueueIsEmptyCollectToo: each handles one message and sends a handful of requests, so that none of them ever comes to a
// step by their number.
func TestJobsThatEndWhenTheQueueIsEmptyCollectToo(t *testing.T) {
	perDay := 30
	if testing.Short() {
		perDay = 8
	}
	inBubble(t, func(t *testing.T, r *rig) {
		const days = 60
		var spent collecting
		k := r.markersFor(&spent, nil)
		random := rand.New(rand.NewPCG(1, 2))
		ctx := retry.WithRandom(t.Context(), random.Float64)
		most, total := 0, 0
		for day := range days {
			r.service.Reset()
			for i := range perDay {
				r.send(fmt.Sprintf("%d-%d", day, i))
				if err := r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: k, ExitWhenEmpty: true}).Run(ctx); err != nil {
					t.Fatal(err)
				}
				pass(24 * time.Hour / time.Duration(perDay))
			}
			total += r.service.Requests()
			most = max(most, r.remembered("markers"))
		}
		t.Logf("%d markers at most; the collection has sent %d of %d requests", most, spent.requests.Load(), total)
		// Markers live for 15 days, and a step comes every five days on average, sometimes not for twenty. There are two for each message.
		if limit := 2 * 45 * perDay; most > limit || float64(spent.requests.Load()) > 0.01*float64(total) {
			t.Errorf("%d markers at most, want %d; the collection has sent %d of %d requests", most, limit, spent.requests.Load(), total)
		}
	})
}

// TestNothingIsCollectedBeforeItsTime: a marker is needed until its copies have expired, and a day longer. A machine whose clock is days ahead
// does not decide.
func TestNothingIsCollectedBeforeItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a", dated(1))
		stop := r.begin(r.markers)
		pass(time.Minute)
		stop()
		const life = 15 * 24 * time.Hour // Keep, the longest life of a copy, and a day
		pass(life - time.Hour)
		if n, err := r.markers.sweep(t.Context(), "orders"); n != 0 || err != nil {
			t.Errorf("an hour before its time: %d deleted, %v", n, err)
		}
		pass(time.Hour)
		ahead := r.markersFor(&collecting{behind: 2 * time.Hour}, nil)
		if n, err := ahead.sweep(t.Context(), "orders"); n != 0 || err == nil {
			t.Errorf("by a clock that is two hours ahead: %d deleted, %v", n, err)
		}
		if n, err := r.markers.sweep(t.Context(), "order"); n != 0 || err != nil {
			t.Errorf("of another queue: %d deleted, %v", n, err)
		}
		if n, err := r.markers.sweep(t.Context(), "orders"); n != 2 || err != nil {
			t.Errorf("in its time: %d deleted, %v", n, err)
		}
	})
}

// TestCollectionCanBeLeftToGC: with KeepExpired.
func TestCollectionCanBeLeftToGC(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var spent collecting
		stop := r.begin(r.markersFor(&spent, &MarkersOptions{KeepExpired: true}))
		pass(3 * 24 * time.Hour) // thousands of requests
		stop()
		if n := spent.requests.Load(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}
