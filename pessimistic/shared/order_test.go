//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package shared

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// crowd is what processes did that want something shared again and again, each time as another process if they are shells.
type crowd struct {
	served   []int
	overtook []int           // for each wait, how many turns of others began during it
	waited   []time.Duration // for each wait
	deaths   []int           // for each wait, how many waiters have died meanwhile
	requests int
}

func (c crowd) total() (n int) {
	for _, served := range c.served {
		n += served
	}
	return n
}

// least returns the turns of the least served, as a share of the mean.
func (c crowd) least() float64 {
	return float64(slices.Min(c.served)*len(c.served)) / float64(c.total())
}

func (c crowd) String() string {
	return fmt.Sprintf("%d turns, least %.2f most %.2f of the mean, %d overtook, waits of up to %v, %.1f requests a turn", c.total(), c.least(),
		float64(slices.Max(c.served)*len(c.served))/float64(c.total()), slices.Max(c.overtook), slices.Max(c.waited), float64(c.requests)/float64(c.total()))
}

// gather lets n processes take turns for a while, after a time of settling. dies is the share of the calls that die while they wait.
func gather(t *testing.T, seed uint64, n int, section, settle, span time.Duration, dies float64, take func(ctx context.Context, k *pessimistic.Locker, i int) (*pessimistic.Hold, error)) (out crowd) {
	t.Helper()
	if testing.Short() {
		span /= 2
	}
	synctest.Test(t, func(t *testing.T) {
		w := pesstest.New(t, pesstest.WithLatency(seed))
		ctx, stop := context.WithTimeout(t.Context(), settle+span)
		defer stop()
		began := time.Now()
		out.served = make([]int, n)
		rand := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		turn, deaths := 0, 0
		w.Witness.On(func(pesstest.Carried) {
			mu.Lock()
			defer mu.Unlock()
			if time.Since(began) > settle {
				out.requests++
			}
		})
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				for ctx.Err() == nil {
					k := lockerOf(w, &pessimistic.LockerOptions{Owner: fmt.Sprint(i)})
					mu.Lock()
					from, died, asked := turn, deaths, time.Now()
					doomed, after := rand.Float64() < dies, time.Duration(rand.Int64N(int64(10*time.Second)))
					mu.Unlock()
					ctx, die := context.WithCancel(ctx)
					if doomed {
						time.AfterFunc(after, die)
					}
					a, err := take(ctx, k, i)
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						die()
						mu.Lock()
						deaths++
						mu.Unlock()
						continue
					}
					mu.Lock()
					if time.Since(began) > settle {
						out.served[i]++
						out.overtook, out.deaths = append(out.overtook, turn-from), append(out.deaths, deaths-died)
						out.waited = append(out.waited, time.Since(asked))
					}
					turn++
					mu.Unlock()
					bubble.Sleep(section)
					if err := a.Release(ctx); err != nil {
						t.Error(err)
					}
					die()
				}
			})
		}
		all.Wait()
	})
	return out
}

// seeds returns how many seeds to try.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return 1
	}
	return n
}

func aSlot(slots int) func(ctx context.Context, k *pessimistic.Locker, i int) (*pessimistic.Hold, error) {
	return func(ctx context.Context, k *pessimistic.Locker, _ int) (*pessimistic.Hold, error) {
		s, err := NewSemaphore(k, "pool", slots)
		if err != nil {
			return nil, err
		}
		return holdOf(s.Acquire(ctx, nil))
	}
}

// TestSlotsAreSharedInTurns: 30 processes on 3 slots: 3 had everything, and 27 nothing.
func TestSlotsAreSharedInTurns(t *testing.T) {
	for seed := range seeds(3) {
		got := gather(t, seed, 30, time.Second, 30*time.Second, 2*time.Minute, 0, aSlot(3))
		t.Log(got)
		if got.least() < 0.7 || slices.Max(got.overtook) > 40 {
			t.Errorf("seed %d: %v", seed, got)
		}
	}
}

// TestASlotThatIsTakenAgainAtOnceReachesTheWaiter: a holder of 1 s that came again at once kept a waiter out for 30 min.
func TestASlotThatIsTakenAgainAtOnceReachesTheWaiter(t *testing.T) {
	got := gather(t, 1, 2, time.Second, 0, time.Minute, 0, aSlot(1))
	t.Log(got)
	if got.least() < 0.8 || slices.Max(got.overtook) > 3 {
		t.Error(got)
	}
}

// TestDeadWaitersDelayASemaphoreBriefly: 30 % of the calls die while they wait.
func TestDeadWaitersDelayASemaphoreBriefly(t *testing.T) {
	const section, slots = 2 * time.Second, 3
	for seed := range seeds(2) {
		got := gather(t, seed, 18, section, 20*time.Second, 3*time.Minute, 0.3, aSlot(slots))
		t.Log(got)
		for i, waited := range got.waited {
			if most := time.Duration(got.overtook[i]/slots+2)*(section+time.Second) + time.Duration(got.deaths[i])*2*time.Second; waited > most {
				t.Errorf("seed %d: one waited for %v, while %d had a turn and %d died", seed, waited, got.overtook[i], got.deaths[i])
			}
		}
	}
}

// TestReadersAndWritersTakeTurns: writers that follow each other without a gap kept the readers out.
func TestReadersAndWritersTakeTurns(t *testing.T) {
	for seed := range seeds(2) {
		got := gather(t, seed, 8, time.Second, 30*time.Second, 3*time.Minute, 0, func(ctx context.Context, k *pessimistic.Locker, i int) (*pessimistic.Hold, error) {
			l, err := NewRWLock(k, "data", nil)
			if err != nil {
				return nil, err
			}
			if i%2 == 0 {
				return writing(l)(ctx, nil)
			}
			return reading(l)(ctx, nil)
		})
		t.Log(got)
		if got.least() < 0.5 || slices.Max(got.waited) > 30*time.Second {
			t.Errorf("seed %d: %v %v", seed, got, got.served)
		}
	}
}

// TestNoOrderKeepsASlot: whatever stands in the records of the slots, or where waiters sign up, a waiter gets a slot soon after
// its release, and so does a call that does not wait.
func TestNoOrderKeepsASlot(t *testing.T) {
	for name, order := range map[string]string{
		"no numbers": "\x01 what?", "all far ahead": "9007199254740992 9007199254740992 9007199254740992 3600000", "many waiters": "7 0 9007199254740992 1000",
		"a few waiters": "7 0 30 1000", "of another blob": "7 1000 1030 1000", "turns of an hour": "7 0 0 3600000",
	} {
		for _, forged := range []int{1, 2} {
			pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
				theirs := semaphoreOf(w, direct(w, nil), 2)
				held := []*Slot{slotOf(t, theirs), slotOf(t, theirs)}
				for _, slot := range held[:forged] {
					m := w.Look(slot.Hold().Name()).Metadata
					m["azconcorder"] = order
					setMetadata(w, slot.Hold().Name(), slot.Hold().ID(), m)
				}
				waiting := make(chan *Slot, 1)
				go func() { waiting <- slotOf(t, semaphoreOf(w, lockerOf(w, nil), 2)) }()
				bubble.Sleep(20 * time.Second)
				for _, slot := range held {
					releaseSlot(t, slot)
					bubble.Sleep(time.Second)
				}
				released := time.Now()
				got := <-waiting
				if late := time.Since(released); late > 10*time.Second {
					t.Errorf("%s in %d: the slot was taken %v after its release", name, forged, late)
				}
				other, err := semaphoreOf(w, lockerOf(w, nil), 2).TryAcquire(t.Context())
				if err != nil {
					t.Fatalf("%s in %d: a free slot is refused: %v", name, forged, err)
				}
				releaseSlot(t, other)
				releaseSlot(t, got)
			})
		}
	}
}

// setMetadata replaces the metadata of a blob under a lease.
func setMetadata(w *pesstest.World, name, id string, metadata map[string]string) {
	w.T.Helper()
	values := map[string]*string{}
	for key, value := range metadata {
		values[key] = &value
	}
	_, err := w.Service.BlockBlob("box", name).SetMetadata(context.Background(), values, &blob.SetMetadataOptions{
		AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}}})
	if err != nil {
		w.T.Fatal(err)
	}
}
