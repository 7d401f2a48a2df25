package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest/explore"
	"github.com/azconc/azconc/pkg/retry"
)

// waiters is a program of a client that holds a lock for a while, and others that come meanwhile, sign up and wait. Whatever
// happens to one of them, the others get the lock.
func waiters(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		emptyPage(w)
		d := &ward{}
		var p explore.Program
		for i := range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				k, err := locker(c)
				if err != nil {
					return err
				}
				if i > 0 {
					if err := retry.Sleep(ctx, 3*time.Second); err != nil {
						return err
					}
				}
				return k.Do(ctx, "l", patient, func(ctx context.Context, h *pessimistic.Hold) error {
					defer d.enter(ctx, i, false)()
					d.follow(i, h.Fence())
					if i == 0 {
						return retry.Sleep(ctx, 6*time.Second)
					}
					return nil
				})
			})
		}
		p.Check = func() error {
			failed := 0
			for _, err := range w.Errors() {
				if err != nil {
					failed++
				}
			}
			if failed > 1 {
				return fmt.Errorf("one fault cost more than one client its turn: %v", w.Errors())
			}
			return errors.Join(d.overlap, nothingLeaked(w, "l"))
		}
		return p
	}
}

func TestWaitersAreServedInEverySchedule(t *testing.T) {
	explored(t, []bounds{{clients: 2, faults: 1, preemptions: 1}, {clients: 3, faults: 1, preemptions: -1}}, waiters, explore.Options{Kinds: withKills})
}
