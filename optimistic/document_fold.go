package optimistic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
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
	protocol.Loop
	batch []*entry[T]

	base  *sealed.Version[T] // the version that value is to replace; nil if it has to be read
	fresh bool               // base was read by this fold
	value T

	// The write under way, the entries whose changes are in it, and the entry whose change is running. Guarded by
	// Document.mu.
	write    *protocol.Change
	included map[*entry[T]]bool
	running  *entry[T]
}

func (f *folder[T]) run(ctx context.Context) error {
	f.base = f.cached
	f.cached = nil // it is current only after a success
	if f.base != nil && (f.maxAge < 0 || time.Since(f.readAt) > f.maxAge) {
		f.base = nil
	}
	err := f.Run(ctx)
	if err == nil && f.Res.Changed && f.Res.ETag != "" {
		f.remember()
	}
	return err
}

// next reads the base, unless one is remembered, and runs the changes on it.
func (f *folder[T]) next(ctx context.Context, open *protocol.Refusal) (*protocol.Change, error) {
	if open != nil || f.base != nil && f.Crowded() {
		f.base = nil
	}
	for {
		if f.base == nil {
			done, err := f.Base(ctx, open, f.read)
			if done && err == nil {
				f.cached = f.base // the value was read with its version, so the two belong together
			}
			if done {
				return nil, err
			}
			f.send(nil, nil) // the last write was not applied
		}
		included, err := f.apply()
		if err != nil {
			return nil, err
		}
		var w *protocol.Change
		if len(included) > 0 {
			if w, err = prepared(f.Call, f.target, f.base, f.value, protocol.Intent{}, f.o.Conditions); err != nil {
				return nil, err
			}
		}
		switch {
		case w == nil && !f.fresh:
			f.base = nil // there is nothing to write, but the value may be stale: read it to be sure
		case w == nil:
			f.cached, f.Res.ETag = f.base, f.base.ETag
			return nil, nil
		case f.send(w, included):
			return w, nil
		}
		// Or a caller has given up since its change ran: run the others without it.
	}
}

func (f *folder[T]) read(ctx context.Context) (protocol.State, error) {
	v, err := f.target.Read(ctx)
	if err != nil {
		return protocol.State{}, err
	}
	f.base, f.fresh, f.readAt = v, true, time.Now()
	return v.State, nil
}

// refused marks the refusal of a write over a remembered version: it is no sign of contention.
func (f *folder[T]) refused(w protocol.Change, err error) (open *protocol.Refusal, again bool, cause error) {
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok {
		return nil, false, err
	}
	return &protocol.Refusal{Change: w, Conflict: conflict, Contended: w.Base.Lineage, Stale: !f.fresh}, true, err
}

// send notes the write that is about to be sent, with the changes of included. It reports whether all their callers still
// wait.
func (f *folder[T]) send(w *protocol.Change, included map[*entry[T]]bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write, f.included = nil, nil
	for e := range included {
		if e.ctx.Err() != nil {
			return false
		}
	}
	f.write, f.included = w, included
	return true
}

// leave reports whether e, whose caller has given up, is neither in the write under way nor running. Then it will be in no
// other write.
func (f *folder[T]) leave(e *entry[T]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.included[e] && f.running != e
}

// runs notes whose change is running.
func (f *folder[T]) runs(e *entry[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = e
}

// apply runs every change on a copy of base, in order. A change that fails or panics is dropped, and its caller gets
// the error or the panic. All changes run again if the base turns out to be stale, and only the last run counts.
func (f *folder[T]) apply() (included map[*entry[T]]bool, err error) {
	value, err := f.cloner.Clone(f.base.Value)
	if err != nil {
		return nil, f.Fail(err)
	}
	if !f.base.Exists && !f.o.Create {
		return nil, &NotFoundError{Op: f.Op, Resource: f.Resource}
	}
	f.Res.Attempts++
	included = make(map[*entry[T]]bool, len(f.batch))
	for _, e := range f.batch {
		trial := value
		if len(f.batch) > 1 {
			if trial, err = f.cloner.Clone(value); err != nil {
				return nil, f.Fail(err)
			}
		}
		e.err, e.panic = context.Cause(e.ctx), nil
		if e.err == nil {
			f.runs(e)
			e.run(f.Res.Attempts-1, f.base.State, &trial)
			f.runs(nil)
		}
		if cause, ok := retry.Stopped(e.err); ok {
			e.err = cause
		}
		if e.err == nil {
			value = trial
			included[e] = true
		}
	}
	f.value = value
	return included, nil
}

// run runs the change, and recovers its panic, which must not end the goroutine that folds for all callers.
func (e *entry[T]) run(attempt int, base protocol.State, value *T) {
	defer func() {
		if p := recover(); p != nil {
			e.panic, e.err = p, fmt.Errorf("the change panicked: %v", p)
		}
	}()
	e.err = e.change(protocol.WithRun(e.ctx, attempt, base), value)
}

// remember keeps the written value for the next update, with the lineage that the write stored. It is not called if the
// response was lost: the version that was found may be a later one, by a foreign writer, and a value kept under it would
// overwrite that writer's change.
func (f *folder[T]) remember() {
	kept, err := f.cloner.Clone(f.value)
	if err != nil {
		return
	}
	f.cached = sealed.Carry(&sealed.Version[T]{State: protocol.State{Exists: true, ETag: f.Res.ETag, Lineage: f.write.Lineage}, Value: kept}, f.write.Carry)
}

// await waits for the outcome of an entry whose own context has ended while the write was under way.
func (e *entry[T]) await(ctx context.Context) (Result, error) {
	detached, cancel := retry.Detached(ctx, e.fold.settings.Grace)
	defer cancel()
	select {
	case <-e.done:
		return e.outcome()
	case <-detached.Done():
	}
	e.fold.mu.Lock()
	defer e.fold.mu.Unlock()
	w := e.fold.write
	if !e.fold.included[e] || w == nil { // it was refused meanwhile, and has not been sent again
		return Result{}, fmt.Errorf("update %s: %w", e.fold.Resource, context.Cause(ctx))
	}
	call := protocol.NewCall(e.fold.Op, e.fold.Resource, e.fold.settings) // that of the fold is in use
	call.Began = e.fold.Began
	return Result{}, call.Unknown(*w, "the caller stopped waiting while the shared write was under way", context.Cause(ctx))
}

// settled reports whether the fold has ended.
func (e *entry[T]) settled() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}
