package election

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
)

// led is who leads, by the holders themselves.
type led struct {
	mu    sync.Mutex
	now   string
	fence fence.Token
	log   []string
}

func (l *led) as(name string) func(context.Context, *pessimistic.Hold) error {
	return func(ctx context.Context, h *pessimistic.Hold) error {
		l.mu.Lock()
		l.now, l.fence, l.log = name, h.Fence(), append(l.log, name)
		l.mu.Unlock()
		<-ctx.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.fence == h.Fence() {
			l.now = ""
		}
		return nil
	}
}

func (l *led) get() (string, fence.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now, l.fence
}

// TestPreemptKnowsALeaderThatHasNotSignedYet: the first look can come between the acquisition of the lead and the stamp. The
// stamp says that the leader has led since a later second than the look, and the leader leads on.
func TestPreemptKnowsALeaderThatHasNotSignedYet(t *testing.T) {
	unsigned := 0
	for seed := range uint64(24) {
		synctest.Test(t, func(t *testing.T) {
			o := pesstest.WithLatency(seed)
			o.DateLag = pesstest.DateLag
			w := pesstest.New(t, o)
			bubble.Sleep(time.Duration(seed) * 120 * time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			var l led
			var all sync.WaitGroup
			one := electionOf(w, lockerOf(w, nil), nil)
			all.Go(func() { _ = one.Run(ctx, l.as("one")) })
			for len(w.Leased()) == 0 {
				bubble.Sleep(10 * time.Millisecond)
			}
			if name, _ := l.get(); name == "" {
				unsigned++
			}
			asked := make(chan error, 1)
			all.Go(func() { asked <- electionOf(w, lockerOf(w, nil), nil).Preempt(ctx) })
			bubble.Sleep(time.Minute)
			if name, _ := l.get(); name != "one" || len(asked) != 0 {
				t.Errorf("seed %d: Preempt has returned although %q leads", seed, name)
			}
			if _, err := one.Resign(ctx); err != nil {
				t.Error(err)
			}
			bubble.Sleep(10 * time.Second)
			if len(asked) != 1 {
				t.Errorf("seed %d: Preempt has not returned although the leader has resigned", seed)
			}
			cancel()
			all.Wait()
		})
	}
	if unsigned < 5 {
		t.Errorf("only %d leaders had not signed when Preempt was called", unsigned)
	}
}

// With one response in five lost, the leader of the beginning is gone when Preempt returns, and the candidate that asked
// leads next.
func TestPreemptDeposesTheLeaderAlthoughResponsesAreLost(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			w := pesstest.New(t, &aztest.Options{Seed: seed, Latency: func() time.Duration { return 5 * time.Millisecond }})
			ctx, cancel := context.WithCancel(t.Context())
			var l led
			var all sync.WaitGroup
			one := electionOf(w, lockerOf(w, &pessimistic.LockerOptions{Owner: "one"}), &Options{Preemptible: true})
			two := electionOf(w, lockerOf(w, &pessimistic.LockerOptions{Owner: "two"}), &Options{Preemptible: true})
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2})
			all.Go(func() { _ = one.Run(ctx, l.as("one")) })
			for name, _ := l.get(); name == ""; name, _ = l.get() {
				bubble.Sleep(10 * time.Millisecond)
			}
			_, before := l.get()
			bubble.Sleep(time.Duration(seed) * 137 * time.Millisecond)
			all.Go(func() { _ = two.Run(ctx, l.as("two")) })
			bubble.Sleep(time.Second)
			if err := two.Preempt(ctx); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			if name, token := l.get(); name == "one" && token == before {
				t.Errorf("seed %d: the leader of the beginning leads on", seed)
			}
			bubble.Sleep(time.Minute)
			if name, _ := l.get(); name != "two" {
				t.Errorf("seed %d: %q leads a minute later; leaders were %v", seed, name, l.log)
			}
			cancel()
			all.Wait()
		})
	}
}

// A leader that is seen between its acquisition and its stamp looks like the holder before it.
func TestPreemptIsNotDeceivedByAStampThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pesstest.New(t, &aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
		ctx, cancel := context.WithCancel(t.Context())
		var l led
		var all sync.WaitGroup
		if h, err := direct(w, nil).Lock(t.Context(), "leader", nil); err != nil || h.Release(t.Context()) != nil {
			t.Fatal("the lock was not acquired and released", err)
		}
		bubble.Sleep(time.Minute)
		one := electionOf(w, lockerOf(w, nil), &Options{Preemptible: true})
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Set Blob Metadata"), Count: 4})
		all.Go(func() { _ = one.Run(ctx, l.as("one")) })
		for w.State("leader") != lease.Leased {
			bubble.Sleep(time.Millisecond)
		}
		two := electionOf(w, direct(w, nil), nil)
		if err := two.Preempt(ctx); err != nil {
			t.Fatal(err)
		}
		if name, _ := l.get(); name == "one" || len(l.log) != 1 {
			t.Errorf("%q leads on; leaders were %v", name, l.log)
		}
		cancel()
		all.Wait()
	})
}

// An outage that costs the second lock does not end the wish to take over.
func TestPreemptSurvivesTheLossOfItsIntent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pesstest.New(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var l led
		var all sync.WaitGroup
		one := electionOf(w, direct(w, nil), nil)
		all.Go(func() { _ = one.Run(ctx, l.as("one")) })
		bubble.Sleep(5 * time.Second)
		two := electionOf(w, lockerOf(w, &pessimistic.LockerOptions{Duration: 15 * time.Second}), nil)
		asked := make(chan error, 1)
		go func() { asked <- two.Preempt(t.Context()) }()
		bubble.Sleep(5 * time.Second) // it has the second lock
		for range 2 {
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseRequest})
			bubble.Sleep(20 * time.Second)
			w.Faults.SetFaults()
			bubble.Sleep(20 * time.Second)
		}
		select {
		case err := <-asked:
			t.Errorf("Preempt returned while one leads: %v", err)
		default:
			if w.State("leader/intent") != lease.Leased {
				t.Error("the intent is not announced any more")
			}
			cancel()
			if err := <-asked; err != nil {
				t.Error(err)
			}
		}
		cancel()
		all.Wait()
		if got := w.State("leader/intent"); got != lease.Available {
			t.Errorf("the intent is %v", got)
		}
	})
}
