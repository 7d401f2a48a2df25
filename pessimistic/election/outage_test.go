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
)

// An outage at any time of an election ends a term at most, and never the candidacy.
func TestElectingSurvivesAnOutage(t *testing.T) {
	for _, at := range []time.Duration{0, time.Second, 12 * time.Second} {
		pesstest.InOutages(t, func(t *testing.T, w *pesstest.World, fault aztest.Fault, outage time.Duration) {
			ctx, cancel := context.WithCancelCause(t.Context())
			over := errors.New("over")
			var l led
			var all sync.WaitGroup
			for _, name := range []string{"one", "two", "three"} {
				e := electionOf(w, lockerOf(w, &pessimistic.LockerOptions{Duration: 15 * time.Second}), &Options{Preemptible: true})
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
			asked := make(chan error, 1)
			go func() {
				asked <- electionOf(w, lockerOf(w, &pessimistic.LockerOptions{Duration: 15 * time.Second}), nil).Preempt(ctx)
			}()
			bubble.Sleep(outage)
			w.Faults.SetFaults()
			if err := <-asked; err != nil {
				t.Errorf("at %v: Preempt: %v", at, err)
			}
			bubble.Sleep(15*time.Second + pesstest.Slack + 10*time.Second)
			if name, _ := l.get(); name == "" {
				t.Errorf("at %v: nobody leads after the outage; leaders were %v", at, l.log)
			}
			cancel(over)
			all.Wait()
		})
	}
}
