package group

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/retry"
)

// tenure is the time from when this member begins to take a part until the work on it has returned. hold and ctx are guarded by the
// Group's mu.
type tenure struct {
	since time.Time
	hold  *pessimistic.Hold // nil while it is being acquired
	ctx   context.Context   // of the work
	end   context.CancelCauseFunc
}

// begin begins a tenure, unless there is one: work that hangs keeps this member from taking its part again.
func (r *run) begin(number int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.has[number] != nil {
		return false
	}
	t := &tenure{since: time.Now()}
	t.ctx, t.end = context.WithCancelCause(r.ctx)
	r.has[number] = t
	r.all.Go(func() {
		defer func() {
			t.end(nil)
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.has, number)
		}()
		r.slots <- struct{}{}
		h, err := r.locker.Lock(r.ctx, r.name+"/"+strconv.Itoa(number), try)
		<-r.slots
		if err == nil {
			r.hold(t, number, h)
		} else if errors.Is(err, pessimistic.ErrContent) {
			r.end(err) // it never will be a lock
		}
	})
	return true
}

// hold has the work done while h is held, and releases h.
func (r *run) hold(t *tenure, number int, h *pessimistic.Hold) {
	r.mu.Lock()
	t.end(nil)
	t.hold = h
	t.ctx, t.end = context.WithCancelCause(h.Context())
	r.mu.Unlock()

	returned := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-returned:
			return
		case <-t.ctx.Done():
		}
		drain := time.NewTimer(r.opts.Drain)
		defer drain.Stop()
		select {
		case <-returned:
		case <-drain.C:
			_ = h.Release(t.ctx)
		}
	})
	kept := r.supervise(t.ctx, number, h)
	close(returned)
	watching.Wait()
	t.end(nil) // no longer counted, before anybody else can count it
	if !kept {
		_ = h.Release(t.ctx) // whatever becomes of it, the lease ends
	}
}

// supervise calls the work, again and again, until the tenure ends. It reports whether the part is kept.
func (r *run) supervise(ctx context.Context, number int, h *pessimistic.Hold) (kept bool) {
	failing := &locks.Pace{Backoff: r.opts.Pause}
	for ctx.Err() == nil {
		began := time.Now()
		err := r.work(ctx, number, h)
		if k, ok := errors.AsType[*locks.KeptError](err); ok {
			r.end(k.Err)
			return true
		}
		if cause, ok := retry.Stopped(err); ok {
			r.end(cause)
			return false
		}
		if err == nil || time.Since(began) > time.Minute {
			failing = &locks.Pace{Backoff: r.opts.Pause}
		}
		_ = retry.Sleep(ctx, failing.Next(ctx))
	}
	return false
}
