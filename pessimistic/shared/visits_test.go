package shared

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
)

// locker returns the Locker of a process, with the shortest lease.
func locker(p *pesstest.Process) *pessimistic.Locker {
	return lockerOver(p.T, p.Client, &pessimistic.LockerOptions{Duration: 15 * time.Second, Owner: fmt.Sprint(p.ID)})
}

// most returns the largest number of visits of these kinds at the same time.
func most(v *pesstest.Visits, kinds ...string) (n int) {
	type edge struct {
		at time.Time
		by int
	}
	var edges []edge
	for _, one := range v.All() {
		if slices.Contains(kinds, one.Kind) && one.To.After(one.From) {
			edges = append(edges, edge{one.From, 1}, edge{one.To, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(a.at.Compare(b.at), a.by-b.by) // an end makes room for a beginning at the same time
	})
	now := 0
	for _, e := range edges {
		now += e.by
		n = max(n, now)
	}
	return n
}

// overlaps counts the pairs of a writer and another visit at the same time.
func overlaps(v *pesstest.Visits) (n int) {
	all := v.All()
	for i, a := range all {
		for j, b := range all {
			if i != j && a.Kind == "write" && a.From.Before(b.To) && b.From.Before(a.To) {
				n++
			}
		}
	}
	return n
}

func TestNeverMoreThanNHoldASemaphore(t *testing.T) {
	crowded, runs := 0, uint64(20)
	if testing.Short() {
		runs = 3
	}
	for seed := range runs {
		var v pesstest.Visits
		pesstest.Among(t, seed, 6, func(p *pesstest.Process) {
			s, err := NewSemaphore(locker(p), "pool", 3)
			if err != nil {
				t.Error(err)
				return
			}
			for range 4 {
				slot, err := s.Acquire(context.Background(), nil)
				if errors.Is(err, pessimistic.ErrLost) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				v.Visit(p, "slot", slot.Hold(), slot.Release)
			}
		})
		if n := most(&v, "slot"); n > 3 {
			t.Errorf("seed %d: %d at once", seed, n)
		} else if n == 3 {
			crowded++
		}
	}
	if crowded < int(runs/2) {
		t.Errorf("all slots were taken in %d of %d runs: too few to say anything", crowded, runs)
	}
}

func TestTheCountingConvictsASemaphoreOfAnotherSize(t *testing.T) {
	var v pesstest.Visits
	pesstest.Among(t, 1, 6, func(p *pesstest.Process) {
		s, _ := NewSemaphore(locker(p), "pool", 4)
		if slot, err := s.Acquire(context.Background(), nil); err == nil {
			v.Visit(p, "slot", slot.Hold(), slot.Release)
		}
	})
	if n := most(&v, "slot"); n != 4 {
		t.Errorf("%d at once, want 4 to be seen", n)
	}
}

// readersAndWriters runs one history; writers take part in it more rarely than readers.
func readersAndWriters(t *testing.T, seed uint64) *pesstest.Visits {
	var v pesstest.Visits
	pesstest.Among(t, seed, 6, func(p *pesstest.Process) {
		l, err := NewRWLock(locker(p), "data", &RWLockOptions{Readers: 4})
		if err != nil {
			t.Error(err)
			return
		}
		for range 4 {
			if p.Rand.IntN(3) == 0 {
				h, err := l.Lock(context.Background(), nil)
				if err == nil {
					v.Visit(p, "write", h, h.Release)
				} else if !errors.Is(err, pessimistic.ErrLost) {
					t.Error(err)
				}
				continue
			}
			slot, err := l.RLock(context.Background(), nil)
			if err == nil {
				v.Visit(p, "read", slot.Hold(), slot.Release)
			} else if !errors.Is(err, pessimistic.ErrLost) {
				t.Error(err)
			}
		}
	})
	return &v
}

func TestAWriterIsAloneAndReadersAreNot(t *testing.T) {
	together, runs := 0, uint64(20)
	if testing.Short() {
		runs = 3
	}
	for seed := range runs {
		v := readersAndWriters(t, seed)
		if n := overlaps(v); n > 0 {
			t.Errorf("seed %d: a writer overlapped with another holder %d times:\n%v", seed, n, v.All())
		}
		together = max(together, most(v, "read"))
	}
	if together < 2 {
		t.Error("no two readers held the lock at the same time")
	}
}
