package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pessimistic/internal/tickets"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// slots is a call that waits for any of several locks.
type slots struct {
	*acquisition // of none of them; its queue is that of the waiters
	all          locks.Slots
	seen         map[int]lease.Observation // by the last survey; nil before the first
	free         []int                     // likewise
}

// LockAny waits until it holds one of several locks, and returns its number: it is what package shared builds semaphores of,
// and no other package can name its argument. Those who wait sign up beside the first of the locks. How far they have been
// served says the record that has been stamped last.
//
// Errors and what they leave behind are those of Lock. Requests: see shared.Semaphore.
func (k *Locker) LockAny(ctx context.Context, all locks.Slots, opts *LockOptions) (*Hold, int, error) {
	a, err := k.newAcquisition(ctx, all.Lock(0), opts)
	if err != nil {
		return nil, 0, err
	}
	s := &slots{acquisition: a, all: all}
	a.claim.remote.path = k.Path(all.Name)
	a.queue.remote, a.queue.look, a.queue.woken = a.claim.remote, s.survey, all.Freed
	i := all.First
	for {
		h, err := s.take(ctx, i)
		switch {
		case err == nil:
			return h, i, nil
		case errors.Is(err, ErrHeld):
		case s.bears(ctx, err):
			s.queue.failed++
		default:
			return nil, 0, err
		}
		if err := s.await(ctx); err != nil {
			return nil, 0, azerr.Op("acquire", s.claim.remote.path, err)
		}
		i = s.pick(ctx)
	}
}

// bears reports whether the call goes on after a fault: see claim.next.
func (s *slots) bears(ctx context.Context, err error) bool {
	patient := s.claim.wait && (s.opts.MaxWait > 0 || s.claim.remote.answered.Load())
	return patient && ctx.Err() == nil && azerr.Classify(err).Transient()
}

// take acquires a lock if it is free. The first try, before any survey, leaves it to
// waiters of whom its record knows for a second at most, as a call does that does not wait.
func (s *slots) take(ctx context.Context, i int) (*Hold, error) {
	a, err := s.k.newAcquisition(s.parent, s.all.Lock(i), &LockOptions{NoWait: true, MaxWait: s.opts.MaxWait})
	if err != nil {
		return nil, err
	}
	a.queue.order.blob = s.queue.order.blob
	a.claim.began, a.queue.began, a.claim.remote.answered = s.claim.began, s.queue.began, s.claim.remote.answered
	if s.seen != nil {
		order := *s.queue.order
		order.chosen, a.queue.order, a.queue.sawHolder = true, &order, s.queue.sawHolder
		if seen, ok := s.seen[i]; ok {
			a.found = &seen
		}
	}
	ctx, end := a.claim.remote.start(ctx, "Lock")
	h, err := s.k.lock(ctx, a)
	end(err)
	return h, err
}

// await waits until this call may take one of the locks.
func (s *slots) await(ctx context.Context) error {
	for {
		seen, err := s.survey(ctx)
		switch {
		case err == nil:
			s.queue.failed = 0
			s.queue.sees(seen)
		case s.bears(ctx, err):
			s.queue.failed++
		default:
			return err
		}
		switch {
		case err == nil && s.queue.free():
			return nil
		case s.claim.wait:
			return s.queue.untilFree(ctx, err)
		case !seen.State.Free():
			return s.queue.heldError(nil)
		}
		if err := retry.Sleep(ctx, s.queue.pause(ctx)); err != nil {
			return err
		}
	}
}

// survey lists the locks, and returns what it has seen as the state of a single one, which is free if any of them is.
func (s *slots) survey(ctx context.Context) (lease.Observation, error) {
	if s.opts.MaxWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(s.opts.MaxWait-s.queue.run(), time.Millisecond))
		defer cancel()
	}
	one, orders := lease.Observation{State: lease.Leased, Metadata: map[string]string{}}, []tickets.Order{}
	s.seen, s.free = map[int]lease.Observation{}, nil
	for lock, err := range s.k.observed(ctx, s.claim.remote, s.all.Prefix()) {
		if err != nil {
			return one, err
		}
		i, err := strconv.Atoi(lock.name[len(s.all.Prefix()):])
		if err != nil || i < 0 || i >= s.all.N {
			continue
		}
		s.seen[i], orders = lock.seen, append(orders, recordIn(lock.seen.Metadata).order)
		if !lock.seen.State.Free() {
			maps.Copy(one.Metadata, lock.seen.Metadata)
		}
	}
	for i := range s.all.N {
		if seen, ok := s.seen[i]; !ok || seen.State.Free() {
			s.free = append(s.free, i)
		}
	}
	latest := tickets.Latest(orders...)
	one.Metadata[keyOrder] = latest.String()
	one.ETag = azcore.ETag(fmt.Sprint(latest.Turn, s.free))
	s.queue.order.spare = 0
	if len(s.free) > 0 {
		one.State, s.queue.order.spare = lease.Available, int64(len(s.free)-1)
	}
	return one, nil
}

// pick returns one of the free locks. Those who wait have seen the same, and each is the next for another one.
func (s *slots) pick(ctx context.Context) int {
	o := s.queue.order
	at := int64(retry.Random(ctx) * float64(len(s.free)))
	if rank := o.ticket.Rank(o.known); o.signed && rank < int64(len(s.free)) {
		at = rank
	}
	return s.free[at]
}
