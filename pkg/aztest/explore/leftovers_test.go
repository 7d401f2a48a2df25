package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/explore"
)

var errWork = errors.New("the work failed")

// hurries is a program of clients that each acquire a lease, under a context that ends before a lost request is repeated, and
// before the lease is released.
func hurries(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		p := increments(clients, nil)(w)
		for i := range p.Clients {
			p.Clients[i] = func(ctx context.Context, c *explore.Client) error {
				ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
				defer cancel()
				l, err := pessimistic.Acquire(ctx, pessimistic.NewBlob(c.BlockBlob("box", "n")), &pessimistic.AcquireOptions{Duration: time.Minute, NoWait: true})
				if err != nil {
					return err
				}
				bubble.Sleep(20 * time.Millisecond) // longer than ctx lasts
				return l.Release(ctx)
			}
		}
		p.Check = func() error { return leaseIsFree(w) }
		return p
	}
}

// failures is a program of clients that each take a lock for longer than a schedule lasts, and whose work fails.
func failures(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		var p explore.Program
		for i := range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				c.BlockBlob("locks", "x") // makes the container
				k, err := pessimistic.NewLocker(c.Container("locks"), &pessimistic.LockerOptions{Owner: fmt.Sprint(i), Duration: time.Minute, Poll: steady(10 * time.Second)})
				if err != nil {
					return err
				}
				work := func(context.Context, *pessimistic.Hold) error { return errWork }
				return k.Do(ctx, "l", patient, work)
			})
		}
		p.Check = func() error {
			for i, err := range w.Errors() {
				if !errors.Is(err, errWork) && w.Faults() == 0 {
					return fmt.Errorf("client %d reports %w", i, err)
				}
			}
			return free(w, "l")
		}
		return p
	}
}

// lost are the faults after which nothing arrives late.
var lost = []explore.Kind{explore.LoseResponse, explore.LoseRequest}

func TestNothingIsLeakedInAnySchedule(t *testing.T) {
	o := explore.Options{Kinds: lost}
	t.Run("a lease", func(t *testing.T) { explored(t, usual, hurries, o) })
	t.Run("a lock", func(t *testing.T) {
		explored(t, and([]bounds{{clients: 1, faults: 2}, {clients: 2, faults: 1, preemptions: 1}}, 2, 1, 0, 2, 2, 1, 3, 1, 1), failures, o)
	})
}
