package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/fence"
)

// stay is how long a holder was allowed to work.
type stay struct {
	from, to time.Time
	kind     string // "read", "write", "slot", "lead"
	token    fence.Token
}

// visitors are the stays of many processes, which hold for a while, crash, or work until they have to stop.
type visitors struct {
	mu    sync.Mutex
	stays []stay
}

// visit notes a stay until its context ends, and ends it in some way.
func (v *visitors) visit(rng *rand.Rand, kind string, h *Hold, release func(context.Context) error) {
	from := time.Now()
	ended := make(chan struct{})
	context.AfterFunc(h.Context(), func() {
		v.mu.Lock()
		v.stays = append(v.stays, stay{from, time.Now(), kind, h.Fence()})
		v.mu.Unlock()
		close(ended)
	})
	pass(time.Duration(rng.Int64N(int64(4 * time.Second))))
	if rng.IntN(8) == 0 { // it dies: nobody renews any more, and the lease runs out
		h.quit()
		h.keepers.Wait()
		h.mu.Lock()
		stop, _ := h.remaining(h.remote.clock().now())
		h.mu.Unlock()
		pass(stop) // what it runs notices in time
		h.end(errors.New("crashed"))
		_ = release(context.Background()) // for the line within the process
	} else {
		_ = release(context.Background())
	}
	<-ended
}

// most is how many stays of a kind there were at the same time.
func (v *visitors) most(kinds ...string) int {
	type edge struct {
		at time.Time
		by int
	}
	var edges []edge
	for _, s := range v.stays {
		if slices.Contains(kinds, s.kind) && s.to.After(s.from) {
			edges = append(edges, edge{s.from, 1}, edge{s.to, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by // who leaves makes room for who comes
	})
	now, most := 0, 0
	for _, e := range edges {
		now += e.by
		most = max(most, now)
	}
	return most
}

// overlaps counts pairs of a writer and anybody else at the same time.
func (v *visitors) overlaps() (n int) {
	for i, a := range v.stays {
		for j, b := range v.stays {
			if i != j && a.kind == "write" && a.from.Before(b.to) && b.from.Before(a.to) {
				n++
			}
		}
	}
	return n
}

// among runs processes with a Locker each, over a service with faults.
func among(t *testing.T, seed uint64, processes int, live func(w *world, k *Locker, rng *rand.Rand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, &aztest.Options{Seed: seed, Latency: func() time.Duration { return 5 * time.Millisecond }})
		w.faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.03}, aztest.Fault{Kind: aztest.LoseRequest, Probability: 0.03},
			aztest.Fault{Kind: aztest.Throttle, Probability: 0.03})
		var all sync.WaitGroup
		for i := range processes {
			k := w.lockerOf(&LockerOptions{Duration: 15 * time.Second, Owner: fmt.Sprint(i)})
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			all.Go(func() { live(w, k, rng) })
		}
		all.Wait()
		pass(16 * time.Second) // a release that was lost on the way leaves a lease to run out, and no longer
		for _, err := range w.stillLeased() {
			t.Error(err)
		}
	})
}

// stillLeased names the blobs that are leased.
func (w *world) stillLeased() (left []error) {
	k := w.direct(nil)
	for info, err := range k.List(context.Background(), &ListOptions{Held: true}) {
		left = append(left, errors.Join(fmt.Errorf("%s is left to %s", info.Name, info.Owner), err))
	}
	return left
}

func TestNeverMoreThanNHoldASemaphore(t *testing.T) {
	crowded := 0
	for seed := range uint64(20) {
		var v visitors
		among(t, seed, 6, func(w *world, k *Locker, rng *rand.Rand) {
			s, err := NewSemaphore(k, "pool", 3)
			if err != nil {
				t.Error(err)
				return
			}
			for range 4 {
				slot, err := s.Acquire(context.Background(), nil)
				if errors.Is(err, ErrLost) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				v.visit(rng, "slot", slot.Hold, slot.Release)
			}
		})
		if n := v.most("slot"); n > 3 {
			t.Errorf("seed %d: %d at once", seed, n)
		} else if n == 3 {
			crowded++
		}
	}
	if crowded < 10 {
		t.Errorf("all slots were taken in %d of 20 runs: too few to say anything", crowded)
	}
}

func TestTheCountingConvictsASemaphoreOfAnotherSize(t *testing.T) {
	var v visitors
	among(t, 1, 6, func(w *world, k *Locker, rng *rand.Rand) {
		s, _ := NewSemaphore(k, "pool", 4)
		if slot, err := s.Acquire(context.Background(), nil); err == nil {
			v.visit(rng, "slot", slot.Hold, slot.Release)
		}
	})
	if n := v.most("slot"); n != 4 {
		t.Errorf("%d at once, want 4 to be seen", n)
	}
}

// readersAndWriters runs one history; writers take part in it more rarely than readers.
func readersAndWriters(t *testing.T, seed uint64) *visitors {
	var v visitors
	among(t, seed, 6, func(w *world, k *Locker, rng *rand.Rand) {
		l, err := NewRWLock(k, "data", &RWLockOptions{Readers: 4})
		if err != nil {
			t.Error(err)
			return
		}
		for range 4 {
			if rng.IntN(3) == 0 {
				h, err := l.Lock(context.Background(), nil)
				if err == nil {
					v.visit(rng, "write", h, h.Release)
				} else if !errors.Is(err, ErrLost) {
					t.Error(err)
				}
				continue
			}
			slot, err := l.RLock(context.Background(), nil)
			if err == nil {
				v.visit(rng, "read", slot.Hold, slot.Release)
			} else if !errors.Is(err, ErrLost) {
				t.Error(err)
			}
		}
	})
	return &v
}

func TestAWriterIsAloneAndReadersAreNot(t *testing.T) {
	together := 0
	for seed := range uint64(20) {
		v := readersAndWriters(t, seed)
		if n := v.overlaps(); n > 0 {
			t.Errorf("seed %d: a writer met somebody %d times:\n%v", seed, n, v.stays)
		}
		together = max(together, v.most("read"))
	}
	if together < 2 {
		t.Error("readers were never in together")
	}
}

func TestOneLeadsAtATime(t *testing.T) {
	for seed := range uint64(20) {
		var v visitors
		among(t, seed, 4, func(w *world, k *Locker, rng *rand.Rand) {
			e, err := NewElection(k, "leader", nil)
			if err != nil {
				t.Error(err)
				return
			}
			for range 3 {
				err := e.Run(context.Background(), func(_ context.Context, h *Hold) error {
					v.visit(rng, "lead", h, func(context.Context) error { h.end(errors.New("done")); return nil })
					return nil
				})
				if err != nil && !errors.Is(err, ErrLost) {
					t.Error(err)
				}
			}
		})
		slices.SortFunc(v.stays, func(a, b stay) int { return a.from.Compare(b.from) })
		for i, s := range v.stays {
			if i > 0 && (s.token <= v.stays[i-1].token || v.stays[i-1].to.After(s.from)) {
				t.Errorf("seed %d: %+v after %+v", seed, s, v.stays[i-1])
			}
		}
		if len(v.stays) < 8 {
			t.Errorf("seed %d: %d terms", seed, len(v.stays))
		}
	}
}
