package shared

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pessimistic/internal/poll"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// Semaphore admits at most n holders at a time, across all processes that use the same name and the same n. Each holder
// has one of n slots. A slot is a named lock of the Locker, "name/slot/0" to "name/slot/n-1", with its own owner and
// fence, and gives the same guarantee: the context of a holder ends before its slot can be given to another.
//
// A waiter sees all slots with one request. Goroutines that share a Semaphore wait in a queue, and the first of them
// polls for all. There is no order between processes.
//
// A process configured with a larger n admits more holders. To lower n, first let all holders of the slots above it
// release them.
//
// A Semaphore is safe for concurrent use.
type Semaphore struct {
	locker *pessimistic.Locker
	prefix string // of the slots' names
	path   string
	slots  int
	poll   retry.Backoff

	front chan struct{} // a token: the goroutine that has it may look for a slot
	freed chan struct{} // signals the first waiter that a slot of this process is free

	answered atomic.Bool // the service has answered a request of this Semaphore

	mu   sync.Mutex
	last int // the slot this process held last, which is likely to be free; negative before the first
}

// maxSlots is chosen so that one request lists all slots.
const maxSlots = 1000

// NewSemaphore returns a Semaphore with n slots, 1 to 1000. It sends no request.
func NewSemaphore(k *pessimistic.Locker, name string, n int) (*Semaphore, error) {
	if k == nil {
		return nil, errors.New("semaphore: no Locker")
	}
	if n < 1 || n > maxSlots {
		return nil, fmt.Errorf("semaphore: %d slots: must be 1 to %d", n, maxSlots)
	}
	s := &Semaphore{locker: k, prefix: name + "/slot/", slots: n, poll: k.Options().Poll,
		front: make(chan struct{}, 1), freed: make(chan struct{}, 1), last: -1}
	if name == "" {
		return nil, errors.New("semaphore: no name")
	}
	if err := locks.CheckName(k.Options().Prefix, s.slotName(n-1)); err != nil {
		return nil, err
	}
	s.path = k.Path(name)
	s.front <- struct{}{}
	return s, nil
}

// Slot is a slot of a Semaphore that this process holds. It is a fence.Holder, whose fence orders the holders of this slot
// alone: it protects what belongs to the slot. As a reader's, it protects nothing, and must not be used for writing.
type Slot struct {
	*pessimistic.Hold
	Number int // 0 to n-1

	semaphore *Semaphore
}

// Release releases the slot, as Lease.Release does.
func (s *Slot) Release(ctx context.Context) error {
	err := s.Hold.Release(ctx)
	select {
	case s.semaphore.freed <- struct{}{}:
	default:
	}
	return err
}

func (s *Semaphore) slotName(i int) string { return s.prefix + strconv.Itoa(i) }

// Acquire waits until it holds a slot. Errors are those of Locker.Lock; a *HeldError names one of the holders. On any
// error nothing is left behind. The caller must call Release on the Slot.
//
// Requests: 3 if the first slot tried is free, 4 the first time; otherwise 1 to look at that slot, 1 to list all slots,
// and 3 for a free one. Waiting costs one list request per poll, for all goroutines together.
func (s *Semaphore) Acquire(ctx context.Context, opts *pessimistic.LockOptions) (*Slot, error) {
	var o pessimistic.LockOptions
	if opts != nil {
		o = *opts
	}
	return s.acquire(ctx, o)
}

// TryAcquire is Acquire without waiting: it returns a *HeldError if no slot is free, or if other goroutines are already
// waiting.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Slot, error) {
	return s.acquire(ctx, pessimistic.LockOptions{NoWait: true})
}

// Do acquires a slot, runs fn, and releases the slot when fn has returned. Errors are those of the package's Do.
func (s *Semaphore) Do(ctx context.Context, opts *pessimistic.LockOptions, fn func(ctx context.Context, slot *Slot) error) error {
	slot, err := s.Acquire(ctx, opts)
	if err != nil {
		return err
	}
	return locks.Do(ctx, slot, pessimistic.ErrLost, func(ctx context.Context) error { return fn(ctx, slot) })
}

func (s *Semaphore) acquire(ctx context.Context, o pessimistic.LockOptions) (*Slot, error) {
	began := time.Now()
	limited := ctx
	if o.MaxWait > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, o.MaxWait, errWaited)
		defer cancel()
	}
	if o.NoWait {
		select {
		case <-s.front:
		default:
			return nil, &pessimistic.HeldError{Resource: s.path, State: lease.Leased, Local: true}
		}
	} else {
		select {
		case <-s.front:
		case <-limited.Done():
			return nil, s.waited(limited, began, pessimistic.LockInfo{Owner: s.locker.Options().Owner}, true)
		}
	}
	defer func() { s.front <- struct{}{} }()
	slot, err := s.try(ctx, s.sticky(ctx), o)
	p, failed := poll.Pace{Backoff: s.poll}, 0
	for slot == nil {
		var holder pessimistic.LockInfo
		if err == nil {
			slot, holder, err = s.sweep(ctx, limited, o)
		}
		pause := p.Next(ctx)
		switch {
		case slot != nil:
			return slot, nil
		case err == nil && o.NoWait:
			return nil, s.heldBy(holder, began)
		case err == nil:
			failed = 0
		case limited.Err() == nil && !s.bears(err, o), ctx.Err() != nil:
			return nil, err
		default:
			pause = poll.AfterFault(ctx, failed)
			failed++
		}
		if s.pause(limited, pause) != nil {
			if err != nil && !errors.Is(err, errWaited) && ctx.Err() == nil {
				return nil, err // an outage caused the wait
			}
			return nil, s.waited(limited, began, holder, false)
		}
		err = nil
	}
	return slot, err
}

// bears reports whether a call that waits retries a fault; see LockOptions.Patient.
func (s *Semaphore) bears(err error, o pessimistic.LockOptions) bool {
	return !o.NoWait && (o.MaxWait > 0 || o.Patient || s.answered.Load()) && azerr.Classify(err).Transient()
}

// note notes whether the service has answered, with whatever result.
func (s *Semaphore) note(err error) {
	if err == nil || azerr.Classify(err).Status != 0 {
		s.answered.Store(true)
	}
}

var errWaited = errors.New("the time to wait has passed")

// waited returns the error with which the wait ends.
func (s *Semaphore) waited(ctx context.Context, began time.Time, holder pessimistic.LockInfo, local bool) error {
	if cause := context.Cause(ctx); !errors.Is(cause, errWaited) {
		return azerr.Op("acquire", s.path, cause)
	}
	e := s.heldBy(holder, began)
	e.Local = local
	return e
}

func (s *Semaphore) heldBy(holder pessimistic.LockInfo, began time.Time) *pessimistic.HeldError {
	return &pessimistic.HeldError{Resource: s.path, Holder: holder.Owner, Fence: holder.Fence, Since: holder.Since, State: lease.Leased, Waited: time.Since(began)}
}

// pause waits until the next poll, or until a slot of this process is released.
func (s *Semaphore) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.freed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// sticky returns the slot to try first.
func (s *Semaphore) sticky(ctx context.Context) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last < 0 {
		return pick(ctx, s.slots)
	}
	return s.last
}

// try acquires one slot if it is free.
func (s *Semaphore) try(ctx context.Context, i int, o pessimistic.LockOptions) (*Slot, error) {
	o.NoWait = true
	h, err := s.locker.Lock(ctx, s.slotName(i), &o)
	if s.note(err); errors.Is(err, pessimistic.ErrHeld) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.last = i
	s.mu.Unlock()
	return &Slot{Hold: h, Number: i, semaphore: s}, nil
}

// sweep lists all slots and acquires a free one. If there is none, it returns one of the holders. limited bounds the
// listing.
func (s *Semaphore) sweep(ctx, limited context.Context, o pessimistic.LockOptions) (*Slot, pessimistic.LockInfo, error) {
	taken := make([]bool, s.slots)
	var holder pessimistic.LockInfo
	for info, err := range s.locker.List(limited, &pessimistic.ListOptions{Prefix: s.prefix, Held: true}) {
		if s.note(err); err != nil {
			return nil, holder, err
		}
		i, err := strconv.Atoi(strings.TrimPrefix(info.Name, s.prefix))
		if err == nil && i >= 0 && i < s.slots {
			taken[i], holder = true, info
		}
	}
	var free []int
	for i := range taken {
		if !taken[i] {
			free = append(free, i)
		}
	}
	// In random order, since all waiters have just seen the same slots.
	for len(free) > 0 {
		at := pick(ctx, len(free))
		if slot, err := s.try(ctx, free[at], o); slot != nil || err != nil {
			return slot, holder, err
		}
		free = slices.Delete(free, at, at+1)
	}
	return nil, holder, nil
}

// pick returns one of n numbers from 0, at random.
func pick(ctx context.Context, n int) int { return int(retry.Random(ctx) * float64(n)) }
