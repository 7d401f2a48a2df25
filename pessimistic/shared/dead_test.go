package shared

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
)

// mortal is a process that can be killed: no request of it gets through then.
type mortal struct {
	*pesstest.World
	dead atomic.Bool
}

func (m *mortal) Do(r *http.Request) (*http.Response, error) {
	if m.dead.Load() {
		return nil, errors.New("killed")
	}
	return m.Faults.Do(r)
}

// TestNothingFreeIsKeptForTheDead: what is built of locks was refused for ever, as a lock was, after ten waiters had been killed or had
// given up.
func TestNothingFreeIsKeptForTheDead(t *testing.T) {
	type acquire = func(ctx context.Context, k *pessimistic.Locker, opts *pessimistic.LockOptions) (*pessimistic.Hold, error)
	for name, get := range map[string]acquire{
		"a slot": func(ctx context.Context, k *pessimistic.Locker, opts *pessimistic.LockOptions) (*pessimistic.Hold, error) {
			s, err := NewSemaphore(k, "pool", 2)
			if err != nil {
				return nil, err
			}
			return holdOf(s.Acquire(ctx, opts))
		},
		"a gate": func(ctx context.Context, k *pessimistic.Locker, opts *pessimistic.LockOptions) (*pessimistic.Hold, error) {
			l, err := NewRWLock(k, "pool", nil)
			if err != nil {
				return nil, err
			}
			return l.Lock(ctx, opts)
		},
		"a lead": func(ctx context.Context, k *pessimistic.Locker, opts *pessimistic.LockOptions) (*pessimistic.Hold, error) {
			e, err := election.New(k, "lead", &election.Options{Candidacy: opts})
			if err != nil {
				return nil, err
			}
			var lead *pessimistic.Hold
			err = e.Run(ctx, func(_ context.Context, h *pessimistic.Hold) error { lead = h; return election.Keep(nil) })
			return lead, err
		},
		"a table": func(ctx context.Context, k *pessimistic.Locker, opts *pessimistic.LockOptions) (*pessimistic.Hold, error) {
			name, err := k.TableLock("orders", "")
			if err != nil {
				return nil, err
			}
			return k.Lock(ctx, name, opts)
		},
	} {
		for _, killed := range []bool{false, true} {
			for _, wait := range []time.Duration{0, time.Second, 3 * time.Second} { // 0: NoWait
				t.Run(name, func(t *testing.T) {
					pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
						mustGet := func(k *pessimistic.Locker, opts *pessimistic.LockOptions) *pessimistic.Hold {
							a, err := get(t.Context(), k, opts)
							if err != nil {
								t.Fatalf("killed %v, wait %v: %v", killed, wait, err)
							}
							return a
						}
						k := direct(w, nil)
						taken := []*pessimistic.Hold{mustGet(k, nil)}
						if name == "a slot" {
							taken = append(taken, mustGet(k, nil))
						}
						var all sync.WaitGroup
						for range 10 {
							m := &mortal{World: w}
							theirs := lockerOver(t, w.ContainerOver(m), nil)
							all.Go(func() {
								ctx, die := context.WithCancel(t.Context())
								defer die()
								if killed {
									time.AfterFunc(2*time.Second, func() { m.dead.Store(true); die() })
								}
								if _, err := get(ctx, theirs, &pessimistic.LockOptions{MaxWait: 3 * time.Second}); err == nil {
									t.Error("it was held twice")
								}
							})
						}
						all.Wait()
						for _, one := range taken {
							if err := one.Release(t.Context()); err != nil {
								t.Error(err)
							}
						}
						for range 3 {
							began := time.Now()
							a := mustGet(lockerOf(w, nil), &pessimistic.LockOptions{MaxWait: wait, NoWait: wait == 0})
							if took := time.Since(began); took > max(wait, time.Second) || !killed && took > 0 {
								t.Errorf("killed %v, wait %v: it took %v", killed, wait, took)
							}
							if err := a.Release(t.Context()); err != nil {
								t.Error(err)
							}
							bubble.Sleep(time.Minute)
						}
					})
				})
			}
		}
	}
}

// TestASlotThatIsReclaimedIsASlot: a *Lease was returned, which has no fence, and a slot's blob must not be removed.
func TestASlotThatIsReclaimedIsASlot(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		slot := slotOf(t, semaphoreOf(w, lockerOf(w, nil), 2))
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		bubble.Sleep(2 * time.Minute)
		w.Faults.SetFaults()
		again, err := slot.Hold().Reclaim(t.Context())
		if err != nil || again.Name() != slot.Hold().Name() || again.Fence() != slot.Hold().Fence() || again.Err() != nil {
			t.Fatalf("%+v, %v", again, err)
		}
		if err := again.Remove(t.Context()); err != nil { // releases it: the record of a slot says who is next
			t.Error(err)
		}
		if left := w.Look(slot.Hold().Name()); left.State != lease.Available || left.Metadata["azconcorder"] == "" {
			t.Errorf("it leaves %+v", left)
		}
	})
}
