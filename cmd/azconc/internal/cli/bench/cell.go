package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// The ways to carry out a workload.
const (
	azconc = "azconc"
	shared = "one process" // azconc, with one Document or Locker for all clients
	plain  = "plain loop"  // read, change, write with If-Match, at once again on 412
	jitter = "full jitter" // the same with pauses of full jitter
	leased = "lease"       // the lease of a blob is acquired, with full jitter, around a read and a write
)

type workload struct {
	name, what string // one commit, in words
	ways       []string
	prepare    func(s *site, ctx context.Context, c cell) (work, error)
}

// workloads are the workloads that can be measured.
var workloads = []workload{
	{"blob", "an increment of a counter in one blob", []string{azconc, shared, plain, jitter, leased}, (*site).counters},
	{"lock", "an acquisition of one lock and its release", []string{azconc, shared, leased}, (*site).locks},
}

// cell is one measurement.
type cell struct {
	Workload string `json:"workload"`
	Way      string `json:"way"`
	Clients  int    `json:"clients"`
}

func (c cell) String() string { return fmt.Sprintf("%s, %s, %d clients", c.Workload, c.Way, c.Clients) }

// name is that of the blob or the lock of the cell.
func (c cell) name() string {
	return strings.ReplaceAll(fmt.Sprintf("%s-%s-%d", c.Workload, c.Way, c.Clients), " ", "-")
}

// cells returns the cells to measure. The ways stand side by side, so that a machine that becomes slow in between disturbs all alike.
func (o *options) cells() (cells []cell) {
	for _, w := range workloads {
		if !slices.Contains(o.Workloads, w.name) {
			continue
		}
		for _, n := range o.Clients {
			for _, way := range w.ways {
				cells = append(cells, cell{w.name, way, n})
			}
		}
	}
	return cells
}

// most returns the most requests that the cells cost, with those that create and delete their resources.
func (o *options) most() int {
	n := 10
	for _, c := range o.cells() {
		n += o.MaxRequests + 5*c.Clients + 10
	}
	return n
}

// measured has the figures of a cell. Unknown ones are left out.
type measured struct {
	cell
	Commits   int     `json:"commits"`
	Failed    int     `json:"failed"` // commits that failed, such as by a fault of the network
	Requests  int64   `json:"requests"`
	ElapsedMS float64 `json:"elapsed_ms"`

	CommitsPerS       float64 `json:"commits_per_s"`
	RequestsPerCommit float64 `json:"requests_per_commit"`

	// How long a commit takes.
	P50MS float64 `json:"p50_ms,omitzero"`
	P99MS float64 `json:"p99_ms,omitzero"`

	// Least is the commits of the client with the fewest, as a part of the mean: 1 is fair. It is not known with fewer than four
	// commits for each client, when chance alone would make it small.
	Least *float64 `json:"least_of_mean,omitempty"`
}

// work is the load of a cell, until its context ends.
type work struct {
	run   func(ctx context.Context, r *recorder) error
	check func(ctx context.Context, commits int) error // of the stored data after that many commits; nil for nothing to check
}

// commit is a commit that has ended: how long after the beginning of the cell, and after how many of its requests.
type commit struct {
	client   int
	at, took time.Duration
	requests int64
}

// recorder collects the commits of a cell. It is safe for concurrent use.
type recorder struct {
	meter *meter
	stop  context.CancelFunc // the clients
	began time.Time

	mu      sync.Mutex // guards what follows
	over    bool
	commits []commit // before the end
	stored  int      // commits, with those that ended after it
	failed  int
}

// end ends the cell.
func (r *recorder) end() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.stop()
}

// committed records a commit.
func (r *recorder) committed(client int, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stored++; !r.over {
		r.commits = append(r.commits, commit{client, time.Since(r.began), took, r.meter.sent.Load()})
	}
}

// failedMost is the number of failed commits after which a cell is given up.
const failedMost = 10

// failing records a commit that has failed, and reports whether the cell is given up.
func (r *recorder) failing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	return r.failed >= failedMost
}

// together returns the work of clients that each make one commit in a call, and are called again and again.
func together(clients int, commit func(ctx context.Context, client int) error) func(context.Context, *recorder) error {
	return func(ctx context.Context, r *recorder) error {
		var all errgroup.Group
		for i := range clients {
			all.Go(func() error {
				for ctx.Err() == nil {
					began := time.Now()
					err := commit(ctx, i)
					switch {
					case err == nil:
						r.committed(i, time.Since(began))
					case ctx.Err() == nil && r.failing():
						r.end()
						return err
					}
				}
				return nil
			})
		}
		return all.Wait()
	}
}

// measure measures a cell. It creates what the cell needs, and leaves the removal to remove. The error is that of ctx, of the
// preparation or of the work, or it says that a commit that was reported is missing.
func (s *site) measure(ctx context.Context, c cell, o *options) (_ measured, err error) {
	defer func() {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else if err != nil {
			err = fmt.Errorf("%s: %w", c, err)
		}
	}()
	if err := s.create(ctx); err != nil {
		return measured{}, err
	}
	of := slices.IndexFunc(workloads, func(w workload) bool { return w.name == c.Workload })
	w, err := workloads[of].prepare(s, ctx, c)
	if err != nil {
		return measured{}, err
	}
	inside, stop := context.WithCancel(ctx) // without a deadline, before which an update would give up
	defer stop()
	r := &recorder{meter: &meter{bound: int64(o.MaxRequests)}, stop: stop, began: time.Now()}
	r.meter.full = r.end
	s.meter.Store(r.meter)
	defer s.meter.Store(nil)
	defer time.AfterFunc(o.For, r.end).Stop()
	if err = w.run(inside, r); err == nil && w.check != nil && ctx.Err() == nil {
		err = w.check(ctx, r.stored)
	}
	return r.result(c), err
}

// result returns the figures. The first fifth of the commits, in which the clients find their rhythm, is not counted.
func (r *recorder) result(c cell) measured {
	var before commit
	counted := r.commits
	if n := len(r.commits) / 5; n > 0 {
		before, counted = r.commits[n-1], r.commits[n:]
	}
	m := measured{cell: c, Commits: len(counted), Failed: r.failed}
	if len(counted) == 0 {
		m.Requests, m.ElapsedMS = r.meter.sent.Load(), ms(time.Since(r.began))
		return m
	}
	last := counted[len(counted)-1]
	elapsed := last.at - before.at
	m.Requests, m.ElapsedMS = last.requests-before.requests, ms(elapsed)
	m.RequestsPerCommit = rounded(float64(m.Requests) / float64(m.Commits))
	if elapsed > 0 {
		m.CommitsPerS = rounded(float64(m.Commits) / elapsed.Seconds())
	}
	took, done := make([]time.Duration, 0, len(counted)), make([]int, c.Clients)
	for _, n := range counted {
		took = append(took, n.took)
		done[n.client]++
	}
	slices.Sort(took)
	m.P50MS, m.P99MS = ms(took[len(took)/2]), ms(took[len(took)*99/100])
	if c.Clients > 1 && len(counted) >= 4*c.Clients {
		m.Least = new(rounded(float64(slices.Min(done)*c.Clients) / float64(len(counted))))
	}
	return m
}

func ms(d time.Duration) float64 { return rounded(d.Seconds() * 1000) }

// rounded keeps what a measurement of a second can show.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }
