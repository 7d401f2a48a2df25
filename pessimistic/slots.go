package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// slots is a call that waits for any of several locks, or for all of them to be free.
type slots struct {
	*acquisition // of none of them; its queue is that of the waiters, and its line that of this process
	all          locks.Slots
	survey       func(ctx context.Context) (lease.Observation, error) // describes them as a single lock
	seen         map[int]lease.Observation                            // by the last survey; nil before the first
	free         []int                                                // likewise
}

func (k *Locker) newSlots(ctx context.Context, all locks.Slots, opts *LockOptions) (*slots, error) {
	a, err := k.newAcquisition(ctx, all.Lock(0), opts)
	if err != nil {
		return nil, err
	}
	s := &slots{acquisition: a, all: all}
	s.partOf(all)
	a.name, s.survey = all.Prefix(), s.anyFree
	a.queue.look, a.queue.woken = s.look, all.Freed
	return s, nil
}

// partOf makes the call a part of the wait for all of the locks, in whose name it reports.
func (a *acquisition) partOf(all locks.Slots) {
	a.claim.remote.path = a.k.Path(all.Name)
	a.claim.began, a.claim.waited = a.claim.began.Add(-all.Waited), all.Waited
}

func init() {
	locks.LockAny, locks.LockGate, locks.AwaitNone = (*Locker).lockAny, (*Locker).lockGate, (*Locker).awaitNone
}

// lockAny waits until it holds one of several locks, and returns its number: it is what package shared builds semaphores of. Those who
// wait sign up beside the first of the locks. How far they have been served says the record that has been stamped last.
//
// Errors and what they leave behind are those of Lock. Requests: see shared.Semaphore.
func (k *Locker) lockAny(ctx context.Context, all locks.Slots, opts *LockOptions) (*Hold, int, error) {
	s, err := k.newSlots(ctx, all, opts)
	if err != nil {
		return nil, 0, err
	}
	if _, err := k.lines.enter(ctx, s.acquisition); err != nil {
		return nil, 0, azerr.Op("acquire", s.claim.remote.path, err)
	}
	h, i, err := s.lock(ctx)
	if err != nil {
		s.queue.place.leave(ctx)
	} else {
		h.lease.holding.freed = all.Freed
	}
	s.queue.line.leave(ctx, err, s.claim.remote.now(), false)
	return h, i, err
}

func (s *slots) lock(ctx context.Context) (*Hold, int, error) {
	i := *s.all.Last
	if i < 0 {
		i = int(retry.Random(ctx) * float64(s.all.N))
	}
	for {
		h, err := s.take(ctx, i)
		switch {
		case err == nil:
			*s.all.Last = i
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

// lockGate locks the gate of several locks. Errors and requests: those of Lock.
func (k *Locker) lockGate(ctx context.Context, all locks.Slots, opts *LockOptions) (*Hold, error) {
	a, err := k.newAcquisition(ctx, all.Gate(), opts)
	if err != nil {
		return nil, err
	}
	a.partOf(all)
	return k.lock(ctx, a)
}

// awaitNone waits, under a lock, until none of several others is held. That wait is a part of the one for the lock. Errors: those of Lock.
// Requests: 1 for each look.
func (k *Locker) awaitNone(h *Hold, all locks.Slots, opts *LockOptions) error {
	all.Waited = h.lease.waited
	s, err := k.newSlots(h.Context(), all, opts)
	if err != nil {
		return err
	}
	s.queue.place, s.survey = nil, s.anyHeld
	err = s.await(h.Context())
	h.lease.waited = s.claim.waited
	return azerr.Op("lock", s.claim.remote.path, err)
}

// bears reports whether the call goes on after a fault.
func (s *slots) bears(ctx context.Context, err error) bool {
	return (s.claim.endures() || s.claim.limit > 0 && !s.queue.seen.State.Free()) && ctx.Err() == nil && azerr.Classify(err).Transient()
}

// take acquires a lock if it is free. The first try, before any survey, leaves it to
// waiters of whom its record knows for a second at most, as a call does that does not wait.
func (s *slots) take(ctx context.Context, i int) (*Hold, error) {
	a, err := s.k.newAcquisition(s.parent, s.all.Lock(i), &LockOptions{NoWait: true, MaxWait: s.claim.limit})
	if err != nil {
		return nil, err
	}
	a.queue.place.blob = s.queue.place.blob
	a.claim.began, a.claim.waited, a.claim.remote.answered = s.claim.began, s.claim.waited, s.claim.remote.answered
	if s.seen != nil {
		place := *s.queue.place
		place.chosen, a.queue.place, a.queue.sawHolder = true, &place, s.queue.sawHolder
		if seen, ok := s.seen[i]; ok {
			a.found = &seen
		}
	}
	h, err := s.k.lock(ctx, a)
	if errors.Is(err, ErrHeld) {
		s.queue.seen = a.queue.seen
	}
	return h, err
}

// await waits until a survey finds what this call waits for, and it is this call's turn.
func (s *slots) await(ctx context.Context) error {
	for {
		seen, err := s.look(ctx)
		switch {
		case err == nil:
			s.queue.failed = 0
			s.queue.sees(seen)
		case s.bears(ctx, err):
			s.queue.failed++
		case ctx.Err() != nil && !s.queue.seen.State.Free(): // the attempt before has met a holder
			return s.queue.ended(ctx, nil)
		default:
			return err
		}
		switch {
		case err == nil && s.queue.free(ctx):
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

// look makes a survey, in the time that is left. The last one is made when the time has passed.
func (s *slots) look(ctx context.Context) (lease.Observation, error) {
	if s.claim.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(s.claim.limit-s.claim.run(), shortWait))
		defer cancel()
	}
	return s.survey(ctx)
}

// anyHeld lists the locks, and returns what it has seen of one that is held.
func (s *slots) anyHeld(ctx context.Context) (lease.Observation, error) {
	for lock, err := range s.k.observed(ctx, s.claim.remote, s.all.Prefix(), adminTry) {
		if err != nil || !lock.seen.State.Free() {
			return lock.seen, err
		}
	}
	return lease.Observation{State: lease.Available}, nil
}

// anyFree lists the locks, and returns what it has seen as the state of a single one, which is free if any of them is.
func (s *slots) anyFree(ctx context.Context) (lease.Observation, error) {
	one, orders := lease.Observation{State: lease.Leased, Metadata: map[string]string{}}, []order{}
	s.seen, s.free = map[int]lease.Observation{}, nil
	for lock, err := range s.k.observed(ctx, s.claim.remote, s.all.Prefix(), adminTry) {
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
	latest := latestOrder(orders...)
	one.Metadata[keyOrder] = latest.String()
	one.ETag = azcore.ETag(fmt.Sprint(latest.turn, s.free))
	s.queue.place.spare = 0
	if len(s.free) > 0 {
		one.State, s.queue.place.spare = lease.Available, int64(len(s.free)-1)
	}
	return one, nil
}

// pick returns one of the free locks. Those who wait have seen the same, and each is the next for another one.
func (s *slots) pick(ctx context.Context) int {
	o := s.queue.place
	at := int64(retry.Random(ctx) * float64(len(s.free)))
	if rank := o.ticket.rank(o.known); o.signed && rank < int64(len(s.free)) {
		at = rank
	}
	return s.free[at]
}
