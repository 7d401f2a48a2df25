package once

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// Run is a key that the caller is working on: its lock is held, and no result is stored. The caller must call
// Do, or Release.
type Run struct {
	// Note is stored with the result, for whatever reads it later: up to 1 KiB. Set it before Do or Finish.
	Note string

	// Keep is how long the result is kept, and Series the beginning of the keys among which older results are deleted: none that comes
	// after this one. They are Options.Keep, and all keys. Set them before Do or Finish.
	Keep   time.Duration
	Series string

	hold      *pessimistic.Hold
	once      *Once
	key, hash string
	stored    bool // there is a result
}

// Hold returns the hold of the lock, for its Context, Fence and Guard. Release gives it back.
func (a *Run) Hold() *pessimistic.Hold { return a.hold }

// Release releases the lock, or deletes it by Hold.Remove if the key has a result and does not share its lock: it is not needed
// again. It must not be called concurrently with Do or Finish.
func (a *Run) Release(ctx context.Context) error {
	if a.stored && a.once.lock(a.key) == a.key {
		return a.hold.Remove(ctx)
	}
	return a.hold.Release(ctx)
}

// Reclaim continues a Run whose lock's context has ended, as pessimistic.Lease.Reclaim does.
func (a *Run) Reclaim(ctx context.Context) (*Run, error) {
	h, err := a.hold.Reclaim(ctx)
	if err != nil {
		return nil, err
	}
	again := *a
	again.hold = h
	return &again, nil
}

// Do runs fn, stores its result as Finish does, and releases the lock as Release does. fn's context ends when the lock is lost.
//
// Errors: fn's own, after which nothing is stored; *pessimistic.LostError if the lock was lost meanwhile, whatever fn returned;
// and those of Finish. Requests: 2.
func (a *Run) Do(ctx context.Context, fn func(ctx context.Context, h *pessimistic.Hold) ([]byte, error)) (Result, error) {
	defer func() { _ = a.Release(ctx) }() // also after a panic; a stored result stays
	result, err := fn(a.hold.Context(), a.hold)
	if lost := context.Cause(a.hold.Context()); errors.Is(lost, pessimistic.ErrLost) {
		return Result{}, lost
	}
	if err != nil {
		return Result{}, err
	}
	return a.Finish(ctx, result)
}

const maxNote = 1 << 10

// finishGrace is for how long a result is stored after the caller's context has ended: the work is done, and would be done again.
const finishGrace = 15 * time.Second

// Finish stores the result, of up to 64 KiB. While the table does not answer, it tries again every 0.5 to 5.5 seconds, for as
// long as the lock is held: without the result, the next process would repeat the work. It gives up 15 s after ctx has ended.
//
// Errors: *pessimistic.LostError if the lock is lost, and the service's error. After these the result may or may not be stored.
// If another process has stored one, which believed that it held the lock, that one is returned. Requests: 1.
func (a *Run) Finish(ctx context.Context, result []byte) (out Result, err error) {
	ctx, end := a.once.span(ctx, "once.Finish", a.key)
	defer func() { end(err) }()
	if len(result) > maxResult {
		return Result{}, fmt.Errorf("once: the result has %d bytes, more than the limit of %d: store it in a blob and return the blob's name", len(result), maxResult)
	}
	if len(a.Note) > maxNote {
		return Result{}, fmt.Errorf("once: the note has %d bytes, more than the limit of %d", len(a.Note), maxNote)
	}
	storing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		_ = retry.Sleep(storing, finishGrace)
		cancel(context.Cause(ctx))
	})()
	e := entity{Payload: a.hash, Result: result, At: time.Now().UTC(), Fence: int64(a.hold.Fence()), Note: a.Note, Expires: expiry(a.Keep)}
	if strings.HasPrefix(row(a.key), hashed) {
		e.Key = a.key
	}
	for n := 0; ; n++ {
		if lost := a.hold.Guard(storing); lost != nil {
			if storing.Err() != nil && err != nil {
				return Result{}, err
			}
			return Result{}, lost
		}
		if out, err = a.store(storing, e); err == nil || !passes(err) {
			if a.stored = err == nil; a.stored {
				a.collect(ctx)
			}
			return out, err
		}
		_ = retry.Sleep(storing, pause(n))
	}
}

// store stores the result once.
func (a *Run) store(ctx context.Context, e entity) (Result, error) {
	_, err := optimistic.Create(ctx, a.once.at(a.key), e, &optimistic.WriteOptions{SendOptions: a.once.sending()})
	if !errors.Is(err, optimistic.ErrExists) {
		return e.stored(false), err
	}
	there, found, err := markers.Find(ctx, a.once.at(a.key), a.once.sending())
	switch {
	case err != nil || !found: // it was forgotten at once
		return Result{}, err
	case there.Payload != a.hash:
		return Result{}, fmt.Errorf("%w: %s", ErrMismatch, a.key)
	}
	return there.stored(there.Fence != e.Fence), nil
}

// passes reports whether an error may pass by itself: the service does not answer, or its answer is not known.
func passes(err error) bool {
	out := azerr.Classify(err)
	return out.Transient() || out.Ambiguous()
}

// pause is the pause after n+1 tries: 0.5 to 5.5 seconds.
func pause(n int) time.Duration {
	pace := retry.Backoff{Base: time.Second, Cap: 5 * time.Second}
	return pace.Base/2 + pace.Wait(n)
}
