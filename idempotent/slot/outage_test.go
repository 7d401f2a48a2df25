package slot

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/outages"
)

// An outage of a second while the command ended had it run again by another replica, and ended the replicas that waited.
func TestAnOutageAtAnyRequestOfASlotNeitherRepeatsNorEndsIt(t *testing.T) {
	outages.Each(t, func(t *testing.T, o *outages.Outage) {
		s := start(t)
		s.SetFaults(o.Fault())
		var all sync.WaitGroup
		var mu sync.Mutex
		runs, stored := 0, 0
		for replica := range 3 {
			all.Go(func() {
				bubble.Sleep(time.Duration(replica) * time.Second)
				job := (&machine{Transporter: s, lease: time.Minute}).job(t, s, "report", "*/10 * * * *")
				out, err := job.Do(t.Context(), func(context.Context, *pessimistic.Hold, Slot) ([]byte, error) {
					mu.Lock()
					runs++
					mu.Unlock()
					bubble.Sleep(4 * time.Second)
					return []byte("report"), nil
				})
				if err != nil || string(out.Value) != "report" {
					t.Errorf("replica %d: %q, %v", replica, out.Value, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if !out.Replayed {
					stored++
				}
			})
		}
		all.Wait()
		bubble.Sleep(time.Until(o.End()))
		s.SetFaults() // also of an outage that has not begun
		began := time.Now()
		out, err := (&machine{Transporter: s, lease: time.Minute}).job(t, s, "report", "*/10 * * * *").Do(t.Context(), func(context.Context, *pessimistic.Hold, Slot) ([]byte, error) {
			runs++
			return nil, nil
		})
		if took := time.Since(began); err != nil || !out.Replayed || took > 2*time.Second {
			t.Errorf("after the outage: %+v, %v after %v", out, err, took)
		}
		if runs != 1 || stored != 1 {
			t.Errorf("%d runs, %d stored", runs, stored)
		}
	})
}
