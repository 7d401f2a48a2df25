package history

import (
	"fmt"
	"slices"
	"time"
)

// Hold is a time in which a client certainly held a lock.
type Hold struct {
	Who   string
	Fence int64 // the lock's fencing token; 0 if it has none

	// Asked is when the client asked for the lock. It held the lock from From, when it got it, to To, when it last knew
	// that it had it: the moment before it asked whether the lock is still valid, not after. All are by one clock.
	Asked, From, To time.Time

	// Shared holds do not exclude each other.
	Shared bool
}

func (h Hold) String() string {
	return fmt.Sprintf("%s with fence %d from %s to %s", h.Who, h.Fence, h.From.Format(clock), h.To.Format(clock))
}

const clock = "15:04:05.000000"

// Exclusive returns an error if two holds overlap that are not both Shared.
func Exclusive(holds []Hold) error {
	return sweep(holds, func(begins Hold, current []Hold) error {
		for _, h := range current {
			if !h.Shared || !begins.Shared {
				return fmt.Errorf("two holders: %v, and %v", h, begins)
			}
		}
		return nil
	})
}

// AtMost returns an error if more than n holds overlap.
func AtMost(n int, holds []Hold) error {
	return sweep(holds, func(begins Hold, current []Hold) error {
		if len(current) >= n {
			return fmt.Errorf("more than %d holders: %v, and %v", n, current, begins)
		}
		return nil
	})
}

// sweep calls check for each hold, with those that have begun before and not ended. A hold that ends when another begins
// does not overlap it, and one that ends when it begins overlaps nothing: its client never knew that it held.
func sweep(holds []Hold, check func(begins Hold, current []Hold) error) error {
	holds = slices.Clone(holds)
	slices.SortStableFunc(holds, func(a, b Hold) int { return a.From.Compare(b.From) })
	var current []Hold
	for _, h := range holds {
		if !h.To.After(h.From) {
			continue
		}
		current = slices.DeleteFunc(current, func(c Hold) bool { return !c.To.After(h.From) })
		if err := check(h, current); err != nil {
			return err
		}
		current = append(current, h)
	}
	return nil
}

// Growing returns an error unless the fences of all holds differ, and each hold has a larger one than those that began
// before its client asked.
func Growing(holds []Hold) error {
	asked, began := slices.Clone(holds), slices.Clone(holds)
	slices.SortStableFunc(asked, func(a, b Hold) int { return a.Asked.Compare(b.Asked) })
	slices.SortStableFunc(began, func(a, b Hold) int { return a.From.Compare(b.From) })
	seen := map[int64]Hold{}
	for _, h := range holds {
		if other, ok := seen[h.Fence]; ok {
			return fmt.Errorf("one fence for two: %v, and %v", other, h)
		}
		seen[h.Fence] = h
	}
	var largest Hold // of those that have begun
	for _, h := range asked {
		for len(began) > 0 && began[0].From.Before(h.Asked) {
			if began[0].Fence > largest.Fence {
				largest = began[0]
			}
			began = began[1:]
		}
		if h.Fence <= largest.Fence {
			return fmt.Errorf("fences do not grow: %v, and later %v", largest, h)
		}
	}
	return nil
}
