package pessimistic

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
)

// A request of the caller's that hangs must not keep the lease from being renewed, whenever it is sent and whichever
// it is.
func TestAHungRequestDoesNotCostTheLease(t *testing.T) {
	calls := map[string]struct {
		op   string
		call func(context.Context, *Lease) error
	}{
		"Renew":  {"Renew Blob Lease", func(ctx context.Context, l *Lease) error { return l.Renew(ctx) }},
		"Verify": {"Get Blob Properties", func(ctx context.Context, l *Lease) error { return l.Verify(ctx) }},
	}
	for name, tt := range calls {
		for _, d := range []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second} {
			for at := range 8 {
				inBubble(t, func(t *testing.T, w *world) {
					l := acquired(t, w, &AcquireOptions{Duration: d})
					bubble.Sleep(d/3*time.Duration(at)/4 + time.Millisecond)
					w.Faults.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op(tt.op), Count: 1})
					var all sync.WaitGroup
					began := time.Now()
					all.Go(func() {
						if err := tt.call(t.Context(), l); err != nil && name != "Verify" {
							t.Errorf("%s at %d of %v: %v", name, at, d, err)
						}
						if took := time.Since(began); took > d/2 {
							t.Errorf("%s at %d of %v returned after %v", name, at, d, took)
						}
					})
					bubble.Sleep(3 * d)
					if err := context.Cause(l.Context()); err != nil {
						t.Errorf("%s at %d of %v cost the lease: %v", name, at, d, err)
					}
					all.Wait()
					mustRelease(t, l)
				})
			}
		}
	}
}

func TestARenewalIsSentWhileAnotherHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		bubble.Sleep(8 * time.Second)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op("Renew Blob Lease"), Count: 1})
		go func() { _ = l.Renew(t.Context()) }()
		bubble.Sleep(3 * time.Second)
		if stop, _, _ := l.Remaining(); stop != 19*time.Second {
			t.Errorf("the work may go on for %v, want 19 s since the renewal that was due at 10 s", stop)
		}
		mustRelease(t, l) // which cuts the hung one off
	})
}

func TestOfTwoReclaimsOneSucceeds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		bubble.Sleep(25 * time.Second)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: 100 * time.Millisecond})
		var mu sync.Mutex
		var won []*Lease
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				again, err := l.Reclaim(t.Context())
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, again)
				} else if !errors.Is(err, ErrReleased) {
					t.Errorf("err = %v", err)
				}
			})
		}
		all.Wait()
		if len(won) != 1 {
			t.Errorf("%d handles of one lease", len(won))
		}
		if _, err := l.Reclaim(t.Context()); !errors.Is(err, ErrReleased) {
			t.Errorf("later: %v", err)
		}
		for _, again := range won {
			mustRelease(t, again)
		}
	})
}

func TestAReclaimAndAReleaseAtOnceLeaveNoLease(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, w *world) {
			l := acquired(t, w, nil)
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
			bubble.Sleep(25 * time.Second)
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: 100 * time.Millisecond})
			var again *Lease
			var err error
			var all sync.WaitGroup
			all.Go(func() { again, err = l.Reclaim(t.Context()) })
			all.Go(func() {
				if err := l.Release(t.Context()); err != nil {
					t.Errorf("release: %v", err)
				}
			})
			all.Wait()
			if err == nil {
				if again.Err() != nil {
					t.Errorf("reclaimed, and %v", again.Err())
				}
				mustRelease(t, again)
			}
			if w.State("b") != lease.Available {
				t.Errorf("reclaim: %v; the lease is left %v", err, w.State("b"))
			}
		})
	}
}

// TestAWishOfTheServiceDoesNotCostTheLease: a Retry-After beyond the time at which the work would have to stop is respected only as far
// as another renewal still fits in.
func TestAWishOfTheServiceDoesNotCostTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Throttle, RetryAfter: time.Minute, Match: aztest.Op("Renew Blob Lease"), Count: 1})
		l := acquired(t, w, nil)
		bubble.Sleep(time.Minute)
		if err := l.Context().Err(); err != nil {
			t.Errorf("the lease is lost: %v", context.Cause(l.Context()))
		}
		mustRelease(t, l)
	})
}
