package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// crowd is the clients of a cell. Each makes one commit in a call, and is called again and again.
type crowd struct {
	clients []func(ctx context.Context) error

	// check reports what is wrong with the state of the service after that many commits. Nil for nothing to check.
	check func(ctx context.Context, commits int) error
}

// mostFailures is the number of failed commits after which a cell is given up.
const mostFailures = 10

// sample is a commit that was measured.
type sample struct {
	client int
	took   time.Duration
}

// race is a running crowd.
type race struct {
	cell   Cell
	bounds Bounds
	meter  *meter
	stop   context.CancelFunc

	mu      sync.Mutex // guards what follows
	samples []sample
	failed  int
	failure error
	over    bool
	settled int // the samples before the measurement; negative before it has begun
	timer   *time.Timer
	base    int64     // the requests before it
	start   time.Time // of the clients
	began   time.Time // of the measurement
	result  Measured
}

// Run measures a cell. It creates what the cell needs on its own, such as a blob, and leaves the removal to Remove. The error is that
// of ctx, of the preparation, or the first of mostFailures commits that failed, or it says that a commit that was reported is missing.
func (s *Site) Run(ctx context.Context, c Cell, b Bounds) (Measured, error) {
	if b.For <= 0 && b.Commits <= 0 && b.Requests <= 0 {
		return Measured{}, errors.New("workload: a cell without bounds")
	}
	s.cells++
	m, err := s.run(ctx, c, b)
	if cause := context.Cause(ctx); cause != nil {
		return Measured{}, cause
	}
	if err != nil {
		return Measured{}, fmt.Errorf("%s: %w", c, err)
	}
	return m, nil
}

func (s *Site) run(ctx context.Context, c Cell, b Bounds) (Measured, error) {
	if c.Workload == Consume {
		return s.consume(ctx, c, b)
	}
	m := &meter{bound: int64(b.Requests)}
	all, err := s.crowd(ctx, c, m)
	if err != nil {
		return Measured{}, err
	}
	m.sent.Store(0) // the preparation is not measured
	return all.run(ctx, c, b, m)
}

// crowd prepares the clients of c.
func (s *Site) crowd(ctx context.Context, c Cell, m *meter) (*crowd, error) {
	switch c.Workload {
	case Blob, Document, Entity:
		return s.counters(ctx, c, m)
	case Lock, TableLock:
		return s.locks(ctx, c, m)
	}
	return nil, fmt.Errorf("workload: there is no workload %q", c.Workload)
}

// run lets all clients commit until a bound is reached. The clients never pause between the settling and the measurement: a common
// start would be another crowd.
func (all *crowd) run(ctx context.Context, c Cell, b Bounds, m *meter) (Measured, error) {
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &race{cell: c, bounds: b, meter: m, stop: cancel, settled: -1, start: time.Now()}
	r.began = r.start
	m.full = r.end
	if b.For > 0 {
		settle := time.AfterFunc(b.For, r.settle)
		defer settle.Stop()
	}
	var wg sync.WaitGroup
	for i, commit := range all.clients {
		wg.Go(func() {
			for inside.Err() == nil {
				began := time.Now()
				err := commit(inside)
				r.committed(i, time.Since(began), err, inside)
			}
		})
	}
	wg.Wait()
	r.end() // if ctx has ended
	if r.failure != nil {
		return Measured{}, r.failure
	}
	if all.check != nil && ctx.Err() == nil {
		if err := all.check(ctx, len(r.samples)); err != nil {
			return Measured{}, err
		}
	}
	return r.result, nil
}

// committed records a commit, with which the measurement may begin or end.
func (r *race) committed(client int, took time.Duration, err error, ctx context.Context) { //nolint:revive // ctx tells why err came
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.samples = append(r.samples, sample{client, took}) // also after the end, for the check
		commits, requests := r.bounds.settling(r.cell.Clients)
		if n := len(r.samples); n >= commits || requests > 0 && r.meter.sent.Load() >= int64(requests) {
			r.settleLocked()
		}
		if r.bounds.Commits > 0 && r.settled >= 0 && len(r.samples)-r.settled >= r.bounds.Commits {
			r.endLocked()
		}
	case r.over || ctx.Err() != nil:
	default:
		if r.failed++; r.failed >= mostFailures {
			r.failure = err
			r.endLocked()
		}
	}
}

func (r *race) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settleLocked()
}

// settleLocked begins the measurement, once.
func (r *race) settleLocked() {
	if r.settled < 0 && !r.over {
		r.settled, r.base, r.began = len(r.samples), r.meter.sent.Load(), time.Now()
		if r.bounds.For > 0 {
			r.timer = time.AfterFunc(r.bounds.For, r.end)
		}
	}
}

func (r *race) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked()
}

// endLocked ends the measurement, once. A cell so slow that nothing was committed after the clients had settled counts from its
// start, with what came before.
func (r *race) endLocked() {
	if r.over {
		return
	}
	r.over = true
	defer r.stop()
	if r.timer != nil {
		r.timer.Stop()
	}
	measured := r.samples[max(0, r.settled):]
	if len(measured) == 0 {
		measured, r.base, r.began = r.samples, 0, r.start
	}
	r.result = Measured{
		Cell: r.cell, Commits: len(measured), Failed: r.failed, Requests: r.meter.sent.Load() - r.base, Elapsed: time.Since(r.began), Least: -1,
	}
	done := make([]int, r.cell.Clients)
	for _, s := range measured {
		done[s.client]++
		r.result.took = append(r.result.took, s.took)
	}
	slices.Sort(r.result.took)
	if len(measured) >= 4*len(done) {
		r.result.Least = float64(slices.Min(done)) * float64(r.cell.Clients) / float64(len(measured))
	}
}
