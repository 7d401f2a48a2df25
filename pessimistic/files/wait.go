package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// WaitOptions configures waiting for SMB clients. The zero value selects the defaults.
type WaitOptions struct {
	// MaxWait bounds the wait; the last attempt is made when it has passed. Defaults to pessimistic.Infinite: no bound but
	// ctx.
	MaxWait time.Duration

	// Poll sets the interval between attempts: the first intervals are at least Poll.Base, later ones up to Poll.Cap,
	// drawn at random from a growing range. The service does not notify clients when a handle is closed. Defaults to
	// 250 ms and 5 s.
	Poll retry.Backoff

	// Waiting is called with the clients that have the file open, when the wait begins and every 10 s after that, which
	// costs a request each time. Defaults to none.
	Waiting func(InUseError)

	// Hooks observe the wait. Defaults to those of the operation that waits, if there is one.
	Hooks observe.Hooks

	_ struct{}
}

const waitingEvery = 10 * time.Second

// WaitUnlocked runs op, an operation on a file or directory, and repeats it as long as the service answers that SMB
// clients have it in use: open without sharing the access op needs, with bytes locked, marked for deletion, or not yet
// flushed. Any other error ends the wait at once, above all a permanent one, like a read-only attribute, and a lease,
// for which Acquire waits. Once WaitUnlocked waits, it also retries transient faults.
//
// op must be safe to repeat: a write that got ClientCacheFlushDelay may have been applied. A client that opens the file
// between op's requests is not blocked, unless the caller holds a lease.
//
// Errors: op's own; *InUseError, which names the clients that have the file open, when MaxWait has passed or ctx has
// ended; in the latter case the cause of ctx is in its chain. Requests: op's, and 1 for the handles listed in the
// error.
func WaitUnlocked[C file.Client | directory.Client](ctx context.Context, client *C, opts *WaitOptions, op func(ctx context.Context) error) error {
	w, err := waiterFor(client, opts)
	if err != nil {
		return err
	}
	ctx, end := w.asks.start(ctx, "WaitUnlocked")
	defer func() { end(err) }()
	err = w.until(ctx, nil, op)
	return err
}

// waiter waits for SMB clients. Its time runs from its creation, however many requests share it. It must not be used concurrently.
type waiter struct {
	o     WaitOptions
	path  string
	asks  *call // lists the clients
	began time.Time
	list  func(ctx context.Context) ([]Handle, error)
	noted time.Time // when Waiting was called last
	tried bool      // a wait has ended in another attempt: refusals before that are outdated
}

func waiterFor[C file.Client | directory.Client](client *C, opts *WaitOptions) (*waiter, error) {
	w := &waiter{o: ptr.Value(opts), began: time.Now()}
	if w.o.MaxWait < 0 && w.o.MaxWait != lease.Infinite {
		return nil, fmt.Errorf("WaitOptions.MaxWait: %v is negative and not Infinite", w.o.MaxWait)
	}
	w.o.Poll = locks.PollDefaults(w.o.Poll)
	open, c, err := handlesOf(client, &HandlesOptions{Hooks: w.o.Hooks})
	if err != nil {
		return nil, err
	}
	w.path, w.asks, w.list = c.path, c, func(ctx context.Context) ([]Handle, error) { return c.handles(ctx, open) }
	return w, nil
}

// until runs op until SMB clients do not prevent it. err is why it was refused before, or nil. Of several requests that were refused
// while they were in flight together, one waits.
func (w *waiter) until(ctx context.Context, err error, op func(ctx context.Context) error) error {
	pace, refused := locks.Pace{Backoff: w.o.Poll}, (*InUseError)(nil)
	if w.tried {
		err = nil
	}
	for {
		if err == nil {
			err = op(ctx)
		}
		reason, used := inUse(err)
		switch {
		case used:
			refused = &InUseError{Resource: w.path, Reason: reason, Err: err, Waited: time.Since(w.began)}
		case err == nil, refused == nil, ctx.Err() == nil && !azerr.Classify(err).Transient():
			return err
		}
		if stop := w.pause(ctx, refused, &pace); stop != nil {
			return stop
		}
		err, w.tried = nil, true
	}
}

// pause waits for the next attempt, or returns why there is none.
func (w *waiter) pause(ctx context.Context, refused *InUseError, pace *locks.Pace) error {
	if w.o.Waiting != nil && ctx.Err() == nil && (w.noted.IsZero() || time.Since(w.noted) >= waitingEvery) {
		refused.Handles, _ = w.list(ctx)
		w.noted = time.Now()
		w.o.Waiting(*refused)
	}
	wait := pace.Next(ctx)
	if w.o.MaxWait > 0 {
		left := w.o.MaxWait - time.Since(w.began)
		if left <= 0 {
			return w.giveUp(ctx, refused)
		}
		wait = min(wait, left)
	}
	if retry.Sleep(ctx, wait) != nil {
		refused.Err = errors.Join(context.Cause(ctx), refused.Err)
		return w.giveUp(ctx, refused)
	}
	return nil
}

// giveUp lists the clients once more, even if ctx has ended, but then only briefly.
func (w *waiter) giveUp(ctx context.Context, refused *InUseError) error {
	ctx, cancel := retry.Detached(ctx, 2*time.Second)
	defer cancel()
	if handles, err := w.list(ctx); err == nil {
		refused.Handles = handles
	}
	refused.Waited = time.Since(w.began)
	return refused
}

// WaitClosed waits until no SMB client has a file or directory open. A client may open it again at once: to wait for an
// operation that needs it closed, use WaitUnlocked. Errors: *InUseError when MaxWait has passed or ctx has ended;
// ErrNotFound if the file is gone, which is how a pending deletion ends; *azerr.OpError. Requests: 1 per attempt.
func WaitClosed[C file.Client | directory.Client](ctx context.Context, client *C, opts *WaitOptions) error {
	w, err := waiterFor(client, opts)
	if err != nil {
		return err
	}
	list := w.list
	var last []Handle
	w.list = func(context.Context) ([]Handle, error) { return last, nil } // already known
	ctx, end := w.asks.start(ctx, "WaitClosed")
	err = w.until(ctx, nil, func(ctx context.Context) error {
		handles, err := list(ctx)
		if err != nil {
			return err // and last remains what was seen last
		}
		if last = handles; len(last) > 0 {
			return errOpen
		}
		return nil
	})
	end(err)
	return err
}
