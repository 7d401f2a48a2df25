// Package shared limits how many processes hold something at the same time: a Semaphore admits n, and an RWLock admits
// many readers or one writer. Both are built from the named locks of a pessimistic.Locker, with their promises and limits.
package shared

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
)

// Semaphore admits at most n holders at a time, across all processes that use the same name and the same n. Each holder
// has one of n slots. A slot is a named lock of the Locker, "name/slot/0" to "name/slot/n-1", with its own owner and
// fence, and gives the same guarantee: the context of a holder ends before its slot can be given to another.
//
// A waiter sees all slots with one request. Goroutines that share a Locker wait in a queue, and the first of them
// polls for all. Processes that wait sign up beside slot 0, and are served in that order as far as possible; see Locker.Lock.
//
// A process configured with a larger n admits more holders. To lower n, first let all holders of the slots above it
// release them.
//
// A Semaphore is safe for concurrent use.
type Semaphore struct {
	locker *pessimistic.Locker
	all    locks.Slots
}

// What package pessimistic has for this package alone.
var (
	lockAny   = locks.LockAny.(func(k *pessimistic.Locker, ctx context.Context, all locks.Slots, opts *pessimistic.LockOptions) (*pessimistic.Hold, int, error))
	lockGate  = locks.LockGate.(func(k *pessimistic.Locker, ctx context.Context, all locks.Slots, opts *pessimistic.LockOptions) (*pessimistic.Hold, error))
	awaitNone = locks.AwaitNone.(func(k *pessimistic.Locker, h *pessimistic.Hold, all locks.Slots, opts *pessimistic.LockOptions) error)
)

// maxSlots is chosen so that one request lists all slots.
const maxSlots = 1000

// NewSemaphore returns a Semaphore with n slots, 1 to 1000. It sends no request.
func NewSemaphore(k *pessimistic.Locker, name string, n int) (*Semaphore, error) {
	switch {
	case k == nil:
		return nil, errors.New("semaphore: no Locker")
	case n < 1 || n > maxSlots:
		return nil, fmt.Errorf("semaphore: %d slots: must be 1 to %d", n, maxSlots)
	case name == "":
		return nil, errors.New("semaphore: no name")
	}
	s := &Semaphore{locker: k, all: locks.Slots{Name: name, N: n, Last: new(-1), Freed: make(chan struct{}, 1)}}
	if err := locks.CheckName(k.Options().Prefix, s.all.Lock(n-1)); err != nil {
		return nil, err
	}
	return s, nil
}

// Slot is a slot of a Semaphore that this process holds.
type Slot struct {
	Number int // 0 to n-1

	hold *pessimistic.Hold
}

// Hold returns the hold of the slot's lock. Its fence orders the holders of this slot alone: it protects what belongs to the slot. As a
// reader's, it protects nothing, and must not be used for writing.
func (s *Slot) Hold() *pessimistic.Hold { return s.hold }

// Context is that of the slot's lock: see Lease.Context.
func (s *Slot) Context() context.Context { return s.hold.Context() }

// Release releases the slot's lock, as Lease.Release does.
func (s *Slot) Release(ctx context.Context) error { return s.hold.Release(ctx) }

// Acquire waits until it holds a slot. Errors are those of Locker.Lock; a *HeldError names one of the holders. On any
// error nothing is left behind. The caller must call Release on the Slot.
//
// Requests: 3 if the first slot tried is free, 4 the first time, 2 if this Semaphore has released it within 0.1 s; otherwise 1 to
// look at that slot, 1 to list all slots, and 2 for a free one, 4 if it was never used. Waiting costs 1 to sign up, 3 the first
// time, 1 more to give up, and one list request per look, for all goroutines together.
func (s *Semaphore) Acquire(ctx context.Context, opts *pessimistic.LockOptions) (*Slot, error) {
	h, number, err := lockAny(s.locker, ctx, s.all, opts)
	if err != nil {
		return nil, err
	}
	return &Slot{Number: number, hold: h}, nil
}

// TryAcquire is Acquire without waiting: it returns a *HeldError if no slot is free, or if other goroutines are already
// waiting. It leaves a free slot to processes that wait for a second at most.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Slot, error) {
	return s.Acquire(ctx, &pessimistic.LockOptions{NoWait: true})
}

// Do acquires a slot, runs fn, and releases the slot when fn has returned. Errors are those of the package's Do.
func (s *Semaphore) Do(ctx context.Context, opts *pessimistic.LockOptions, fn func(ctx context.Context, slot *Slot) error) error {
	slot, err := s.Acquire(ctx, opts)
	return locks.Do(ctx, slot, err, pessimistic.ErrLost, fn)
}
