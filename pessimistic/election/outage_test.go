package election

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
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

func (l *led) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// An outage at any time of an election ends a term at most, and never the candidacy.
func TestElectingSurvivesAnOutage(t *testing.T) {
	for _, at := range []time.Duration{0, time.Second, 12 * time.Second} {
		pesstest.InOutages(t, func(t *testing.T, w *pesstest.World, fault aztest.Fault, outage time.Duration) {
			ctx, cancel := context.WithCancelCause(t.Context())
			over := errors.New("over")
			var l led
			var all sync.WaitGroup
			for _, name := range []string{"one", "two", "three"} {
				e := electionOf(w, lockerOf(w, &pessimistic.LockerOptions{Duration: 15 * time.Second}), nil)
				all.Go(func() {
					if err := e.Run(ctx, l.as(name)); !errors.Is(err, over) {
						t.Errorf("at %v: %s ran until %v", at, name, err)
					}
				})
			}
			if at == 0 {
				w.Faults.SetFaults(fault)
			} else {
				bubble.Sleep(at)
				w.Faults.SetFaults(fault)
			}
			bubble.Sleep(outage)
			w.Faults.SetFaults()
			bubble.Sleep(15*time.Second + pesstest.Slack + 10*time.Second)
			if l.get() == "" {
				t.Errorf("at %v: nobody leads after the outage; leaders were %v", at, l.log)
			}
			cancel(over)
			all.Wait()
		})
	}
}
