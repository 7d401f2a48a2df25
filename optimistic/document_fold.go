package optimistic

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/retry"
)

// foldContext returns a context that ends when the contexts of all entries have ended, so the write continues as long
// as any caller waits. Its values are those of the first entry, for tracing.
func foldContext[T any](batch []*entry[T]) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(batch[0].ctx))
	var mu sync.Mutex
	left := len(batch)
	var stops []func() bool
	for _, e := range batch {
		stops = append(stops, context.AfterFunc(e.ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				cancel(context.Cause(e.ctx))
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(context.Canceled)
	}
}

// folder is one fold in progress.
type folder[T any] struct {
	*Document[T]
	*protocol.Call
	batch []*entry[T]
}

func (f *folder[T]) run(ctx context.Context) error {
	budget := retry.Budget{Attempts: f.o.Attempts, Elapsed: f.o.Elapsed, Backoff: f.o.Backoff}.Start()
	base, fresh := f.cached, false
	f.cached = nil             // it is current only after a success
	var open *protocol.Refusal // the write that was refused, until a read has confirmed that it was not applied
	for {
		var err error
		if base == nil {
			if base, err = protocol.Again(ctx, f.Call, f.target.Read); err != nil {
				return f.Abandon(ctx, open, f.Fail(err))
			}
			fresh = true
		}
		if done, err := f.Confirm(open, base.State); done {
			if err == nil {
				f.cached = base // the value was read with its version, so the two belong together
			}
			return err
		}
		open = nil
		value, changed, err := f.apply(base)
		if err != nil {
			return err
		}
		if !changed {
			if !fresh {
				base = nil // there is nothing to write, but the value may be stale: read it to be sure
				continue
			}
			f.cached, f.Res.ETag = base, base.ETag
			return nil
		}
		w, err := f.prepare(base, value)
		if err != nil {
			return err
		}
		etag, err := f.Commit(ctx, *w)
		if err == nil {
			f.Applied(*w, etag)
			f.remember(base, value, *w, etag)
			return nil
		}
		conflict, ok := errors.AsType[*ConflictError](err)
		if !ok {
			return err
		}
		f.Res.Conflicts++
		open = &protocol.Refusal{Change: *w, Conflict: conflict}
		if fresh { // a stale cached value is no sign of contention
			pause := f.Pause(base.Lineage, f.o.Backoff.In(ctx))
			if f.Outlasts(pause, open) {
				now, err := f.Look(ctx, w.Look)
				if err != nil {
					return f.Abandon(ctx, open, f.Fail(err))
				}
				if done, err := f.Confirm(open, now); done {
					return err
				}
			}
			if err := budget.NextAfter(ctx, pause); err != nil {
				if ctx.Err() != nil {
					return f.Abandon(ctx, open, f.Fail(err))
				}
				return f.Surrender(ctx, *w, conflict)
			}
		}
		base = nil
	}
}

// apply runs every change on a copy of base, in order. A change that fails or panics is dropped, and its caller gets
// the error or the panic. All changes run again if the base turns out to be stale, and only the last run counts.
func (f *folder[T]) apply(base *Version[T]) (T, bool, error) {
	value, err := f.cache.Clone(base.Value)
	if err != nil {
		return value, false, f.Fail(err)
	}
	if !base.Exists && !f.o.Create {
		return value, false, &NotFoundError{Op: f.Op, Resource: f.Resource}
	}
	f.Res.Attempts++
	left := 0
	for _, e := range f.batch {
		trial := value
		if len(f.batch) > 1 {
			if trial, err = f.cache.Clone(value); err != nil {
				return value, false, f.Fail(err)
			}
		}
		e.err, e.panic = context.Cause(e.ctx), nil
		if e.err == nil {
			e.run(f.Res.Attempts-1, &trial)
		}
		if cause, ok := retry.Stopped(e.err); ok {
			e.err = cause
		}
		if e.err == nil {
			value = trial
			left++
		}
	}
	if left == 0 {
		return value, false, nil
	}
	return value, !base.Exists || !f.cache.Equal(value, base.Value), nil
}

// run runs the change, and recovers its panic, which must not end the goroutine that folds for all callers.
func (e *entry[T]) run(attempt int, value *T) {
	defer func() {
		if p := recover(); p != nil {
			e.panic, e.err = p, fmt.Errorf("the change panicked: %v", p)
		}
	}()
	e.err = e.change(protocol.WithAttempt(e.ctx, attempt), value)
}

func (f *folder[T]) prepare(base *Version[T], value T) (*protocol.Change, error) {
	w, err := prepared(f.Call, f.target, base, value, protocol.Intent{}, f.o.Conditions)
	if w == nil && err == nil {
		err = f.Fail(errors.New("the target has nothing to write although its Equal reports a change"))
	}
	return w, err
}

// remember keeps the written value for the next update, with the lineage that the write stored. If the response was
// lost, the version of the value is not known: the version that was found may be a later one, by a writer outside
// azconc, and a value kept under it would overwrite that writer's change.
func (f *folder[T]) remember(base *Version[T], value T, w protocol.Change, etag azcore.ETag) {
	if etag == "" {
		return
	}
	kept, err := f.cache.Clone(value)
	if err != nil {
		return
	}
	carry, err := f.cache.Written(base, value)
	if err != nil {
		return
	}
	f.cached = &Version[T]{State: State{Exists: true, ETag: etag, Lineage: w.Lineage}, Value: kept, Carry: carry}
}
