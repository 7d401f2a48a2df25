//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package capacity

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

type number struct {
	N int `json:"n"`
}

func increment(_ context.Context, n *number) error { n.N++; return nil }

// bill sorts the requests of a service by what they cost.
func bill(s *aztest.Service) (b Bill) {
	for _, r := range s.Log() {
		switch {
		case strings.Contains(r.Op, "Message"):
			b.Messages++
		case strings.Contains(r.Op, "Entit"):
			b.Entities++
		case r.Op == "Put Blob", r.Op == "Set Blob Metadata", r.Op == "Create Container", r.Op == "List Blobs":
			b.Writes++
		default:
			b.Others++
		}
	}
	return b
}

// world is a service 5 ms away, with what the patterns need.
type world struct {
	*aztest.Service
	t      *testing.T
	locker *pessimistic.Locker
}

func newWorld(t *testing.T, seed int) *world {
	var n atomic.Uint64
	s := aztest.New(&aztest.Options{Latency: func() time.Duration {
		x := (n.Add(1) + uint64(seed)) * 0x9e3779b97f4a7c15
		return (Trip-1)*time.Millisecond + time.Duration(x>>33)%(2*time.Millisecond)
	}})
	s.SetFaults(aztest.Fault{Kind: aztest.Throttle, Rate: PerBlob, Per: aztest.PerBlob, Match: func(r *aztest.Request) bool {
		return !strings.Contains(r.Op, "Message") && !strings.Contains(r.Op, "Entit")
	}})
	s.BlockBlob("box", "any") // makes the container
	w := &world{Service: s, t: t}
	w.locker = w.newLocker()
	return w
}

func (w *world) newLocker() *pessimistic.Locker {
	k, err := pessimistic.NewLocker(w.Container("box"), nil)
	w.must(err)
	return k
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) blob() optimistic.Target[number] {
	return blobs.NewJSON[number](w.BlockBlob("box", "n"))
}
func (w *world) entity() optimistic.Target[number] {
	return tables.NewEntity[number](w.Table("numbers"), "p", "r")
}

func (w *world) counter() *sharded.Counter {
	box := w.Container("box")
	c, err := sharded.NewCounter("visits", func(name string) optimistic.Target[sharded.Part] {
		return blobs.NewJSON[sharded.Part](box.NewBlockBlobClient(name))
	}, nil)
	w.must(err)
	return c
}

func (w *world) consume(messages int) {
	producer, err := idempotent.NewProducer(w.Queue("orders"), nil)
	w.must(err)
	markers, err := idempotent.NewMarkers(w.Table("markers"), nil)
	w.must(err)
	w.Reset()
	for n := range messages {
		_, err := producer.Send(w.t.Context(), idempotent.Outgoing{ID: fmt.Sprint(n), Body: []byte("x")})
		w.must(err)
	}
	consumer, err := idempotent.NewConsumer(w.Queue("orders"), func(context.Context, *idempotent.Message) error { return nil },
		&idempotent.ConsumerOptions{Markers: markers, ExitWhenEmpty: true, Concurrency: 16})
	w.must(err)
	w.must(consumer.Run(w.t.Context()))
}

// alone makes an operation of a pattern once before, and then once, without other clients, and returns its bill.
func (w *world) alone(pattern string) Bill {
	ctx := w.t.Context()
	twice := func(do func(n int) error) Bill {
		w.must(do(0))
		w.Reset()
		w.must(do(1))
		return bill(w.Service)
	}
	section := func(context.Context, *pessimistic.Hold) error { return nil }
	creating := &optimistic.UpdateOptions{Create: true}
	switch pattern {
	case "update of one blob":
		return twice(func(int) error { _, err := optimistic.Update(ctx, w.blob(), increment, creating); return err })
	case "update of one entity":
		return twice(func(int) error { _, err := optimistic.Update(ctx, w.entity(), increment, creating); return err })
	case "`Document`, clients in one process":
		d, err := optimistic.NewDocument(w.blob(), &optimistic.DocumentOptions{Update: *creating})
		w.must(err)
		return twice(func(int) error { _, err := d.Update(ctx, increment); return err })
	case "sharded counter in blobs":
		_, err := w.counter().Create(ctx, 4)
		w.must(err)
		return twice(func(int) error { _, err := w.counter().Add(ctx, 1, nil); return err })
	case "lock":
		return twice(func(int) error { return w.newLocker().Do(ctx, "job", nil, section) })
	case "semaphore of 10":
		all, err := shared.NewSemaphore(w.newLocker(), "job", 10)
		w.must(err)
		var slots []*shared.Slot
		for range 10 { // makes the locks of the slots
			slot, err := all.Acquire(ctx, nil)
			w.must(err)
			slots = append(slots, slot)
		}
		for _, slot := range slots {
			w.must(slot.Release(ctx))
		}
		return twice(func(int) error {
			s, err := shared.NewSemaphore(w.newLocker(), "job", 10)
			w.must(err)
			return s.Do(ctx, nil, func(context.Context, *shared.Slot) error { return nil })
		})
	case "once, a key for each operation":
		o, err := once.New(w.newLocker(), w.Table("results"), nil)
		w.must(err)
		return twice(func(n int) error {
			_, err := o.Do(ctx, fmt.Sprint("key-", n), nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { return nil, nil })
			return err
		})
	case "queue with a consumer":
		const messages = 320
		w.consume(messages)
		return bill(w.Service).Times(1.0 / messages)
	}
	return Bill{}
}

// hourly returns what the candidates of an election send in an hour, for each, beside the leader.
func (w *world) hourly() Bill {
	ctx, cancel := context.WithCancel(w.t.Context())
	const followers = 4
	done := make(chan error)
	for range followers + 1 {
		e, err := election.New(w.newLocker(), "leader", nil)
		w.must(err)
		go func() {
			done <- e.Run(ctx, func(ctx context.Context, _ *pessimistic.Hold) error { <-ctx.Done(); return ctx.Err() })
		}()
	}
	bubble.Sleep(time.Minute)
	w.Reset()
	bubble.Sleep(10 * time.Minute)
	b := bill(w.Service)
	cancel()
	for range followers + 1 {
		<-done
	}
	return b.Times(6.0 / (followers + 1))
}

// moment is long enough for hundreds of operations of a crowd.
const moment = 1500 * time.Millisecond

// crowd lets clients make operations one after the other for twice as long as lasts. Of the second half it returns the operations
// a second and the bill of each.
func (w *world) crowd(clients int, lasts time.Duration, operation func(client int) func(context.Context) error) (rate float64, each Bill) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*lasts)
	defer cancel()
	var made atomic.Int64
	done := make(chan bool)
	for i := range clients {
		op := operation(i)
		go func() {
			for ctx.Err() == nil {
				if op(ctx) == nil {
					made.Add(1)
				}
			}
			done <- true
		}()
	}
	bubble.Sleep(lasts)
	made.Store(0)
	w.Reset()
	for range clients {
		<-done
	}
	return float64(made.Load()) / lasts.Seconds(), bill(w.Service).Times(1 / float64(made.Load()))
}

// crowded measures a pattern whose clients contend.
func (w *world) crowded(pattern string) (rate float64, each Bill) {
	ctx := w.t.Context()
	creating := optimistic.UpdateOptions{Create: true, Attempts: -1, Elapsed: -1}
	switch pattern {
	case "update of one blob":
		return w.crowd(12, moment, func(int) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := optimistic.Update(ctx, w.blob(), increment, &creating)
				return err
			}
		})
	case "update of one entity":
		return w.crowd(12, moment, func(int) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := optimistic.Update(ctx, w.entity(), increment, &creating)
				return err
			}
		})
	case "sharded counter in blobs":
		_, err := w.counter().Create(ctx, 4)
		w.must(err)
		rate, each = w.crowd(32, moment, func(int) func(context.Context) error {
			c := w.counter()
			return func(ctx context.Context) error { _, err := c.Add(ctx, 1, nil); return err }
		})
		return rate / 4, each
	case "`Document`, clients in one process":
		d, err := optimistic.NewDocument(w.blob(), &optimistic.DocumentOptions{Update: creating})
		w.must(err)
		rate, each = w.crowd(64, moment, func(int) func(context.Context) error {
			return func(ctx context.Context) error { _, err := d.Update(ctx, increment); return err }
		})
		return each.Requests() * rate, Bill{} // writes a second
	case "semaphore of 10":
		return w.crowd(40, moment, func(int) func(context.Context) error {
			sem, err := shared.NewSemaphore(w.newLocker(), "job", 10)
			w.must(err)
			return func(ctx context.Context) error {
				return sem.Do(ctx, nil, func(context.Context, *shared.Slot) error { return nil })
			}
		})
	case "lock":
		return w.crowd(8, 10*moment, func(int) func(context.Context) error {
			k := w.newLocker()
			return func(ctx context.Context) error {
				return k.Do(ctx, "job", nil, func(context.Context, *pessimistic.Hold) error { return nil })
			}
		})
	}
	return 0, Bill{}
}

func near(got, want, share float64) bool { return math.Abs(got-want) <= share*want+1e-9 }

// TestThePageStartsFromWhatIsMeasured: each number that a pattern is given is what the simulated service counts.
func TestThePageStartsFromWhatIsMeasured(t *testing.T) {
	for i, p := range Patterns {
		t.Run(p.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if p.Hourly != (Bill{}) {
					if got := newWorld(t, i).hourly(); !near(got.Requests(), p.Hourly.Requests(), 0.25) {
						t.Errorf("a candidate sends %+v an hour, the page says %+v", got, p.Hourly)
					}
					return
				}
				got := newWorld(t, i).alone(p.Name)
				for part, pair := range map[string][2]float64{"writes": {got.Writes, p.Alone.Writes}, "others": {got.Others, p.Alone.Others},
					"entities": {got.Entities, p.Alone.Entities}, "messages": {got.Messages, p.Alone.Messages}} {
					if !near(pair[0], pair[1], 0.1) {
						t.Errorf("an operation sends %.2f %s, the page says %.2f (all: %+v)", pair[0], part, pair[1], got)
					}
				}
			})
			if testing.Short() && i%3 != 0 {
				return // the crowds of a third of the patterns stand for the others
			}
			synctest.Test(t, func(t *testing.T) {
				rate, each := newWorld(t, i).crowded(p.Name)
				t.Logf("crowded: %.1f a second, %+v each", rate, each)
				switch {
				case p.Fold > 0 && !near(rate, p.Fold, 0.1):
					t.Errorf("%.0f writes a second, the page says %.0f", rate, p.Fold)
				case p.Crowded != (Bill{}) && !near(rate, p.Ceiling, 0.3):
					t.Errorf("%.0f a second, the page says %.0f", rate, p.Ceiling)
				case p.Crowded != (Bill{}) && !near(each.Requests(), p.Crowded.Requests(), 0.3):
					t.Errorf("%+v each, the page says %+v", each, p.Crowded)
				}
			})
		})
	}
}
