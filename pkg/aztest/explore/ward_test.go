package explore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/explore"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/retry"
)

// ward watches critical sections: which clients are inside, each in its own time. The zero value admits one at a time.
type ward struct {
	most    int // how many may be inside; 0 means 1
	inside  map[int]tenant
	fences  []fence.Token
	overlap error
}

type tenant struct {
	ctx    context.Context
	shared bool // with others that share
}

// enter notes that a client is in its critical section until the function that it returns is called. A client whose
// context has ended has been asked to stop, and counts as outside.
func (d *ward) enter(ctx context.Context, client int, shared bool) (leave func()) {
	if d.inside == nil {
		d.inside = map[int]tenant{}
	}
	others := 0
	for other, t := range d.inside {
		if t.ctx.Err() != nil || t.shared && shared {
			continue
		}
		if others++; others >= max(d.most, 1) {
			d.convict("client %d entered while client %d was inside", client, other)
		}
	}
	d.inside[client] = tenant{ctx, shared}
	return func() { delete(d.inside, client) }
}

// follow notes the fence of a client, which must be larger than those before.
func (d *ward) follow(client int, f fence.Token) {
	if n := len(d.fences); n > 0 && f <= d.fences[n-1] {
		d.convict("client %d got the fence %d after %d", client, f, d.fences[n-1])
	}
	d.fences = append(d.fences, f)
}

func (d *ward) convict(format string, args ...any) {
	if d.overlap == nil {
		d.overlap = fmt.Errorf(format, args...)
	}
}

// steady waits the same time after every attempt, so that a schedule can be repeated.
func steady(d time.Duration) retry.Backoff {
	return retry.Backoff{Base: d, Cap: d, Rand: func() float64 { return 1 }}
}

// locker is a client's view of the locks in the container "locks".
func locker(c *explore.Client) (*pessimistic.Locker, error) {
	c.BlockBlob("locks", "x") // makes the container
	return pessimistic.NewLocker(c.Container("locks"), &pessimistic.LockerOptions{Owner: fmt.Sprint(c.Number), Duration: 18 * time.Second, Poll: steady(10 * time.Second)})
}

// nothingLeaked fails if one of the locks is still held: at once if nothing went wrong, and otherwise when every lease
// that a client may have left behind is over.
func nothingLeaked(w *explore.World, locks ...string) error {
	if w.Faults() > 0 {
		bubble.Sleep(19 * time.Second)
	}
	return free(w, locks...)
}

// free fails if one of the locks is held.
func free(w *explore.World, locks ...string) error {
	ctx := context.Background()
	k, err := pessimistic.NewLocker(w.Service.Container("locks"), nil)
	if err != nil {
		return err
	}
	for _, name := range locks {
		info, err := k.Show(ctx, name)
		if errors.Is(err, pessimistic.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Held {
			return fmt.Errorf("the lock %s is still held by client %s", name, info.Owner)
		}
	}
	return nil
}
