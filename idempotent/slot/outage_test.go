package slot

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// outage is a time in which no request is answered, from the n-th request on.
type outage struct {
	kind  aztest.FaultKind
	lasts time.Duration
	n     int

	mu   sync.Mutex
	seen int
	from time.Time
}

// fault is the outage on a service.
func (o *outage) fault() aztest.Fault {
	return aztest.Fault{Kind: o.kind, Match: func(*aztest.Request) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.seen++; o.seen == o.n {
			o.from = time.Now()
		}
		return o.seen >= o.n && time.Since(o.from) < o.lasts
	}}
}

// begun reports whether there were enough requests for the outage to begin.
func (o *outage) begun() bool { return o.seen >= o.n }

// An outage of a second while the command ended had it run again by another replica, and ended the replicas that waited.
func TestAnOutageAtAnyRequestOfASlotNeitherRepeatsNorEndsIt(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.Refuse, aztest.LoseRequest, aztest.LoseAnswer, aztest.Throttle, aztest.Hang} {
		for _, lasts := range []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second} {
			t.Run(fmt.Sprint(kind, " for ", lasts), func(t *testing.T) {
				for n, more := 1, true; more; n++ {
					more = slotInOutage(t, &outage{kind: kind, lasts: lasts, n: n})
				}
			})
		}
	}
}

// slotInOutage has three replicas start a slot, and reports whether the outage began before they had ended.
func slotInOutage(t *testing.T, o *outage) (begun bool) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.SetFaults(o.fault())
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
					t.Errorf("%s for %v from request %d: replica %d: %q, %v", o.kind, o.lasts, o.n, replica, out.Value, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if !out.Replayed {
					stored++
				}
			})
		}
		all.Wait()
		if runs != 1 || stored != 1 {
			t.Errorf("%s for %v from request %d: %d runs, %d stored", o.kind, o.lasts, o.n, runs, stored)
		}
		begun = o.begun()
	})
	return begun
}
