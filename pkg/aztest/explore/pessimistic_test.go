package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest/explore"
	"github.com/azconc/azconc/pkg/fence"
)

// ward watches critical sections: who is inside, in its own time.
type ward struct {
	inside  map[int]context.Context
	fences  []fence.Token
	overlap error
}

// enter notes that a client is in its critical section until the function that it returns is called. A client whose context
// has ended has been asked to stop, and counts as outside.
func (d *ward) enter(ctx context.Context, client int, f fence.Token) (leave func()) {
	if d.inside == nil {
		d.inside = map[int]context.Context{}
	}
	for other, theirs := range d.inside {
		if theirs.Err() == nil && d.overlap == nil {
			d.overlap = fmt.Errorf("client %d entered while client %d was inside", client, other)
		}
	}
	if n := len(d.fences); n > 0 && f <= d.fences[n-1] && d.overlap == nil {
		d.overlap = fmt.Errorf("client %d got the fence %d after %d", client, f, d.fences[n-1])
	}
	d.fences = append(d.fences, f)
	d.inside[client] = ctx
	return func() { delete(d.inside, client) }
}

// lockers is a program of clients that each take a lock and add 1 to a blob through a fence, reading and writing apart as
// only the holder of a lock may.
func lockers(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		p := increments(clients, nil)(w)
		d := &ward{}
		for i := range p.Clients {
			p.Clients[i] = func(ctx context.Context, c *explore.Client) error {
				c.BlockBlob("locks", "x") // makes the container
				k, err := pessimistic.NewLocker(c.Container("locks"), &pessimistic.LockerOptions{Owner: fmt.Sprint(i), Duration: 15 * time.Second})
				if err != nil {
					return err
				}
				return k.Do(ctx, "l", &pessimistic.LockOptions{Wait: time.Minute}, func(ctx context.Context, h *pessimistic.Held) error {
					defer d.enter(ctx, i, h.Fence())()
					n := blobs.Fenced(h, blobs.NewJSON[int](c.BlockBlob("box", "n")))
					_, err := optimistic.Update(ctx, n, func(_ context.Context, n *int) error { *n++; return nil }, nil)
					return err
				})
			}
		}
		p.Check = func() error {
			if d.overlap != nil {
				return d.overlap
			}
			return addedAtMostOnce(w)
		}
		return p
	}
}

// addedAtMostOnce is addedOnce for clients whose error may come after the write: from a release, or the end of a lease.
func addedAtMostOnce(w *explore.World) error {
	got, err := counter(w)
	if err != nil {
		return err
	}
	low := 0
	for _, err := range w.Errors() {
		if err == nil {
			low++
		}
	}
	if got < low || got > len(w.Errors()) {
		return fmt.Errorf("the blob holds %d, and the clients report %v", got, w.Errors())
	}
	return nil
}

func TestALockExcludesInEverySchedule(t *testing.T) {
	explored(t, []bounds{{1, 1, false}, {2, 0, false}, {2, 1, true}}, lockers, explore.Options{Kinds: withKills})
}

// leasers is a program of clients that each try once for a lease on one blob, renew it, change its id and release it.
func leasers(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		p := increments(clients, nil)(w)
		d := &ward{}
		for i := range p.Clients {
			p.Clients[i] = func(ctx context.Context, c *explore.Client) error {
				l, err := pessimistic.TryAcquire(ctx, pessimistic.Blob(c.BlockBlob("box", "n")), &pessimistic.AcquireOptions{Duration: 15 * time.Second})
				if err != nil {
					return err
				}
				leave := d.enter(l.Context(), i, fence.Token(len(d.fences)+1))
				err = errors.Join(l.Renew(ctx), l.Change(ctx, fmt.Sprintf("00000000-0000-4000-8000-%012d", i)))
				leave()
				return errors.Join(err, l.Release(ctx))
			}
		}
		p.Check = func() error {
			if d.overlap != nil {
				return d.overlap
			}
			held := 0
			for _, err := range w.Errors() {
				if errors.Is(err, pessimistic.ErrHeld) {
					held++
				}
			}
			if held == clients {
				return fmt.Errorf("nobody got a lease that was free: %v", w.Errors())
			}
			return nil
		}
		return p
	}
}

func TestALeaseExcludesInEverySchedule(t *testing.T) {
	explored(t, []bounds{{1, 1, false}, {1, 2, true}, {2, 0, false}, {2, 1, true}}, leasers, explore.Options{})
}

// withKills adds the death of a client, whose request may still arrive.
var withKills = []explore.Kind{explore.LoseResponse, explore.LoseRequest, explore.Hold, explore.Twice, explore.Wait, explore.Kill}
