package optimistic

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/azconc/azconc/pkg/retry"
)

// foldContext ends when the contexts of all entries have ended: as long as somebody waits, the write goes on. Its
// values are the first one's, for tracing.
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

// folder is one fold under way.
type folder[T any] struct {
	*Document[T]
	*call
	batch []*entry[T]
}

func (f *folder[T]) run(ctx context.Context) error {
	budget := retry.Budget{Attempts: f.o.Attempts, Elapsed: f.o.Elapsed, Backoff: f.o.Backoff}.Start()
	base, fresh := f.cached, false
	f.cached = nil // whatever happens, it is current only after a success
	var last *write
	for {
		var err error
		if base == nil {
			if base, err = again(ctx, f.call, f.target.Read); err != nil {
				return f.fail(err)
			}
			fresh = true
		}
		if last != nil && last.id != "" && base.Lineage.Has(last.id) {
			f.res.Resolved++
			f.applied(*last, base.Lineage.produced(last.id, base.ETag))
			f.cached = base
			return nil
		}
		value, changed, err := f.apply(base)
		if err != nil {
			return err
		}
		if !changed {
			if !fresh {
				base = nil // nothing to write, as far as an old value shows: believe it only of the current one
				continue
			}
			f.cached, f.res.ETag = base, base.ETag
			return nil
		}
		w, err := f.prepare(base, value)
		if err != nil {
			return err
		}
		etag, err := f.commit(ctx, *w)
		if err == nil {
			f.applied(*w, etag)
			f.remember(base, value, *w)
			return nil
		}
		conflict, ok := errors.AsType[*ConflictError](err)
		if !ok {
			return err
		}
		f.res.Conflicts++
		if fresh { // a stale cache is no sign of contention
			if err := budget.NextAfter(ctx, f.pause(base.Lineage, f.o.Backoff)); err != nil {
				if ctx.Err() != nil {
					return f.fail(err)
				}
				return f.surrender(ctx, *w, conflict)
			}
		}
		last, base = w, nil
	}
}

// apply runs every change on a copy of base, in order. Changes that fail are left out and keep their error; they run
// again when the base turns out to be old.
func (f *folder[T]) apply(base *Version[T]) (T, bool, error) {
	value, err := f.cache.Clone(base.Value)
	if err != nil {
		return value, false, f.fail(err)
	}
	if !base.Exists && !f.o.Create {
		return value, false, &NotFoundError{Op: f.op, Resource: f.resource}
	}
	f.res.Attempts++
	left := 0
	for _, e := range f.batch {
		trial := value
		if len(f.batch) > 1 {
			if trial, err = f.cache.Clone(value); err != nil {
				return value, false, f.fail(err)
			}
		}
		e.err = context.Cause(e.ctx)
		if e.err == nil {
			e.run(f.res.Attempts-1, &trial)
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

// run runs the change, and keeps its panic from ending the goroutine that folds for everybody.
func (e *entry[T]) run(attempt int, value *T) {
	defer func() {
		if p := recover(); p != nil {
			e.panic, e.err = p, fmt.Errorf("the change panicked: %v", p)
		}
	}()
	e.err = e.change(withAttempt(e.ctx, attempt), value)
}

func (f *folder[T]) prepare(base *Version[T], value T) (*write, error) {
	id, lineage := f.stamp(base.State, newWriteID(f.writer))
	send, err := f.target.Prepare(base, value, lineage, f.o.Conditions)
	if err != nil {
		return nil, f.fail(err)
	}
	if send == nil {
		return nil, f.fail(errors.New("the target sees no change where its Equal sees one"))
	}
	return &write{base: base.State, id: id, send: send, look: f.target.Look}, nil
}

// remember keeps what has been written for the next update. The lineage is the one the write carried.
func (f *folder[T]) remember(base *Version[T], value T, w write) {
	kept, err := f.cache.Clone(value)
	if err != nil {
		return
	}
	carry, err := f.cache.Written(base, value)
	if err != nil {
		return
	}
	_, lineage := f.stamp(base.State, w.id)
	f.cached = &Version[T]{State: State{Exists: true, ETag: f.res.ETag, Lineage: lineage}, Value: kept, Carry: carry}
}
