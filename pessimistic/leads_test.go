package pessimistic_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestAtMostOneProcessSaysThatItLeads: a leader is cut off from the service, its wall clock is set, and its callback takes a minute
// to stop. It says that it leads until its deadline and no longer, whatever its clock shows, so never beside the next leader.
func TestAtMostOneProcessSaysThatItLeads(t *testing.T) {
	for name, jump := range map[string]time.Duration{
		"its clock is right":       0,
		"its clock is set back":    -time.Hour,
		"it lags a little":         -3 * time.Second,
		"it advances a little":     3 * time.Second,
		"it was suspended":         20 * time.Second,
		"its clock is an hour off": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
				var shown atomic.Int64
				cut := &pessimistic.LockerOptions{Duration: 15 * time.Second}
				cut.LieAbout(func() time.Duration { return time.Duration(shown.Load()) })
				k, err := pessimistic.NewLocker(w.Container(), cut)
				if err != nil {
					t.Fatal(err)
				}
				other, err := pessimistic.NewLocker(w.Service.Container("box"), &pessimistic.LockerOptions{Duration: 15 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				one, two := candidate(t, k), candidate(t, other)
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				defer func() { cancel(); all.Wait() }()
				lead := func(e *election.Election, slow time.Duration) {
					all.Go(func() {
						_ = e.Run(ctx, func(ctx context.Context, _ *pessimistic.Hold) error {
							<-ctx.Done()
							bubble.Sleep(slow)
							return nil
						})
					})
				}
				lead(one, time.Minute)
				for !one.Leads() {
					bubble.Sleep(100 * time.Millisecond)
				}
				began := time.Now() // at most 2 s after the lease was acquired
				lead(two, 0)
				bubble.Sleep(time.Second)
				w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
				shown.Store(int64(jump))
				taken := false
				for ; time.Since(began) < 40*time.Second; bubble.Sleep(250 * time.Millisecond) {
					ran := time.Since(began)
					leads, passed := one.Leads(), ran+max(jump, 0)
					if leads && passed >= 10*time.Second || !leads && passed < 8*time.Second {
						t.Fatalf("%v after it was elected: one leads: %v, two: %v", ran, leads, two.Leads())
					}
					taken = taken || two.Leads()
				}
				if !taken {
					t.Error("two has never led")
				}
			})
		})
	}
}

func candidate(t *testing.T, k *pessimistic.Locker) *election.Election {
	t.Helper()
	e, err := election.New(k, "leader", nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
