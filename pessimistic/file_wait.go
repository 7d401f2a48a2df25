package pessimistic

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// WaitOptions tunes the waiting for SMB clients. The zero value is the default.
type WaitOptions struct {
	// Wait bounds the waiting; the last attempt is made when it is over. Negative or 0 means no bound but the end of
	// ctx. Defaults to 0.
	Wait time.Duration

	// Poll spaces the attempts: the first waits are at least Poll.Base, later ones up to Poll.Cap, drawn at random from a
	// range that grows with the last one. The service tells nobody when a handle closes. Defaults to 250 ms and 5 s.
	Poll retry.Backoff

	// Waiting is told who has the file open, when the waiting begins and every 10 s from then on, which costs a request
	// each time. Defaults to none.
	Waiting func(InUseError)

	// Hooks let the program watch the requests of the waiting itself. Defaults to silence.
	Hooks Hooks

	_ struct{}
}

const waitingEvery = 10 * time.Second

// WaitUnlocked runs op, an operation on a file or directory, and again for as long as the answer is that SMB clients have
// it in use: open without sharing what op needs, with bytes locked, marked for deletion, or not yet flushed. Anything
// else ends it at once, above all what does not pass, like a read-only attribute, and a lease, which is for Acquire to
// wait for; but once it waits, it rides out transient faults.
//
// op must be one that may be repeated: a write that met ClientCacheFlushDelay may have been carried out. A client that
// opens the file between op's requests is not held off; under a lease it is.
//
// Errors: op's own; *InUseError, which names who has it open, when Wait was over, or when ctx ended, whose cause is then
// in its chain. Requests: op's, and 1 for the names in the error.
func WaitUnlocked[C file.Client | directory.Client](ctx context.Context, client *C, opts *WaitOptions, op func(ctx context.Context) error) error {
	w, err := waiterFor(client, opts)
	if err != nil {
		return err
	}
	return w.until(ctx, op)
}

// waiter waits for SMB clients. Its time runs from when it was made, whatever number of requests wait for it.
type waiter struct {
	o     WaitOptions
	path  string
	asks  *fileCall // who it is
	began time.Time
	list  func(ctx context.Context) ([]Handle, error)
	told  time.Time
}

func waiterFor[C file.Client | directory.Client](client *C, opts *WaitOptions) (*waiter, error) {
	w := &waiter{began: time.Now()}
	if opts != nil {
		w.o = *opts
	}
	w.o.Poll = pollDefaults(w.o.Poll)
	open, c, err := handlesOf(client, &HandlesOptions{Hooks: w.o.Hooks})
	if err != nil {
		return nil, err
	}
	w.path, w.asks, w.list = c.path, c, func(ctx context.Context) ([]Handle, error) { return c.handles(ctx, open) }
	return w, nil
}

func (w *waiter) until(ctx context.Context, op func(ctx context.Context) error) error {
	pace, heard := pace{Backoff: w.o.Poll}, (*InUseError)(nil)
	for {
		err := op(ctx)
		reason, used := inUse(err)
		switch {
		case used:
			heard = &InUseError{Resource: w.path, Reason: reason, Err: err, Waited: time.Since(w.began)}
		case err == nil, heard == nil, ctx.Err() == nil && !azerr.Classify(err).Transient():
			return err
		}
		if stop := w.pause(ctx, heard, &pace); stop != nil {
			return stop
		}
	}
}

// pause waits for the next attempt, or says why there is none.
func (w *waiter) pause(ctx context.Context, heard *InUseError, pace *pace) error {
	if w.o.Waiting != nil && ctx.Err() == nil && (w.told.IsZero() || time.Since(w.told) >= waitingEvery) {
		heard.Handles, _ = w.list(ctx)
		w.told = time.Now()
		w.o.Waiting(*heard)
	}
	wait := pace.next()
	if w.o.Wait > 0 {
		left := w.o.Wait - time.Since(w.began)
		if left <= 0 {
			return w.giveUp(ctx, heard)
		}
		wait = min(wait, left)
	}
	if retry.Sleep(ctx, wait) != nil {
		heard.Err = errors.Join(context.Cause(ctx), heard.Err)
		return w.giveUp(ctx, heard)
	}
	return nil
}

// giveUp asks once more who it is, even if ctx has ended, but then not for long.
func (w *waiter) giveUp(ctx context.Context, heard *InUseError) error {
	ctx, cancel := retry.Detached(ctx, 2*time.Second)
	defer cancel()
	if handles, err := w.list(ctx); err == nil {
		heard.Handles = handles
	}
	heard.Waited = time.Since(w.began)
	return heard
}

// WaitClosed waits until no SMB client has a file or directory open. A client may open it again at once: an operation
// that needs it closed is better waited for by WaitUnlocked. Errors: *InUseError when Wait was over or ctx ended,
// ErrNotFound when it is gone, which is how a pending deletion ends; *OpError. Requests: 1 for each attempt.
func WaitClosed[C file.Client | directory.Client](ctx context.Context, client *C, opts *WaitOptions) error {
	w, err := waiterFor(client, opts)
	if err != nil {
		return err
	}
	w.o.Wait = max(w.o.Wait, 0)
	list := w.list
	var last []Handle
	w.list = func(context.Context) ([]Handle, error) { return last, nil } // it is known
	return w.until(ctx, func(ctx context.Context) error {
		if last, err = list(ctx); err != nil {
			return err
		}
		if len(last) > 0 {
			return errOpen
		}
		return nil
	})
}
