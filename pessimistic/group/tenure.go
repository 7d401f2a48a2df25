package group

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/retry"
)

// tenure is the time from when this member begins to take a part until the work on it has returned. Its fields are guarded by
// the Group's mu; hold, ctx and end do not change once there is a hold.
type tenure struct {
	since time.Time
	hold  *pessimistic.Hold // nil while it is being acquired
	ctx   context.Context   // of the work
	end   context.CancelCauseFunc
	hung  bool // its part was released, and the work has not returned
}

// hangs reports whether the work goes on without its part.
func (t *tenure) hangs() bool { return t.hung }

// lasts reports whether the part is being taken or worked on, and not given up.
func (t *tenure) lasts() bool { return t.ctx.Err() == nil }

// works reports whether the part is worked on.
func (t *tenure) works() bool { return t.hold != nil && t.lasts() }

// tenures returns those of which something holds.
func (g *Group) tenures(holds func(*tenure) bool) (found []*tenure) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.has {
		if holds(t) {
			found = append(found, t)
		}
	}
	return found
}

// begin begins a tenure, unless there is one: work that hangs keeps this member from taking its part again.
func (r *run) begin(number int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.has[number] != nil {
		return false
	}
	t := &tenure{since: time.Now(), ctx: r.ctx}
	r.has[number] = t
	r.all.Go(func() {
		defer func() {
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
	ctx, end := context.WithCancelCause(h.Context())
	defer end(nil)
	r.mu.Lock()
	t.hold, t.ctx, t.end = h, ctx, end
	r.mu.Unlock()

	returned := make(chan bool, 1)
	go func() {
		defer end(nil) // after runtime.Goexit, too, as a failed assertion in a test does: nobody works on the part any more
		defer close(returned)
		returned <- r.supervise(ctx, number, h)
	}()
	<-ctx.Done()
	select {
	case kept := <-returned:
		if !kept {
			_ = h.Release(ctx) // whatever becomes of it, the lease ends
		}
	case <-time.After(r.opts.Drain):
		_ = h.Release(ctx)
		r.mu.Lock()
		t.hung = true
		r.mu.Unlock()
		<-returned
	}
}

// supervise calls the work, again and again, until ctx ends, with which the run ends too if the work wants it. It reports whether the
// part is kept.
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
