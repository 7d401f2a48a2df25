package pessimistic

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
)

// Lease is a lease that this process holds. A goroutine renews it until Release, or until it is lost. A Lease is one
// acquisition: once over, it stays over. It is safe for concurrent use.
//
// A Lease promises that as long as Context has not ended, the service has not granted the lease to another client,
// unless a client broke it or deleted the leased resource; then Context ends when the next renewal notices, within a
// third of the duration.
//
// A Lease does not promise that a request which was sent in time arrives in time. See Guard, and Hold.Fence, which
// closes that gap.
type Lease struct {
	remote remote
	timing timing
	id     string
	health func(context.Context) error
	waited time.Duration

	holding *holding // of a named lock, set before its Hold is returned; nil otherwise

	parent context.Context         // the context given to Acquire
	ctx    context.Context         // the context for the work
	end    context.CancelCauseFunc // ends ctx

	keeping context.Context // the keepers' context: ends at Release or loss
	quit    func()          // ends keeping
	keepers sync.WaitGroup

	giving chan struct{}  // full while Reclaim, or Release after the keepers have ended, is at work
	goesOn bool           // continued under another handle: see Reclaim; guarded by giving
	calls  sync.WaitGroup // Renew and Verify calls under way; added to with mu held
	hurry  chan struct{}  // tells the renewer not to wait
	events sync.Mutex     // serializes hooks; never held during a decision

	releasing sync.Once
	released  error // result of Release, guarded by releasing

	mu       sync.Mutex    // guards the fields below; never held during a request
	granted  clock.Instant // t₀ of the last request that acquired or renewed it
	broken   *breaking
	lost     *LostError    // final
	gaveBack bool          // Release has begun, or Reclaim has succeeded
	stopped  bool          // ctx has ended, or is about to, because of a deadline
	doubted  bool          // a Doubted event has not been followed by Assured yet
	failure  error         // of the last renewal; nil after a success
	changed  chan struct{} // closed and replaced at every change of what Remaining and Guard tell
	renewals int
	failures int
}

// breaking is a break of the lease by another client, noticed late: it ends within a time, and the work must stop at once.
type breaking struct {
	at   clock.Instant
	most time.Duration
}

// newLease returns the Lease for what c was granted at t0.
func newLease(ctx context.Context, c *claim, t0 clock.Instant) *Lease {
	l := &Lease{
		remote: c.remote, timing: c.timing, health: c.health, waited: c.waited,
		parent: ctx, id: c.id, granted: t0,
		giving: make(chan struct{}, 1), hurry: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	l.ctx, l.end = context.WithCancelCause(ctx)
	// The keepers continue when the caller's context ends: its work may still be stopping, and until it has stopped no
	// other client may acquire the lease.
	keeping, quit := context.WithCancelCause(context.WithoutCancel(ctx))
	l.keeping, l.quit = keeping, func() { quit(ErrReleased) }
	l.keepers.Go(l.renewer)
	l.keepers.Go(l.watchman)
	return l
}

// Context returns the context for the work done under the lease. It derives from the context given to Acquire, and ends
// when the work has to stop: with a *LostError, ErrReleased or the parent's cause as its cause. Once ended, it stays
// ended; see Reclaim.
func (l *Lease) Context() context.Context { return l.ctx }

// ID returns the lease id, for the caller's own requests under the lease. A client that knows it can act as the holder:
// do not store it where others can read it.
func (l *Lease) ID() string { return l.id }

// Duration returns the lease's duration, Infinite included.
func (l *Lease) Duration() time.Duration { return l.timing.duration }

// over returns why the lease is over. It is called with mu held.
func (l *Lease) over(now clock.Instant) error {
	switch {
	case l.lost != nil:
		return l.lost
	case l.gaveBack:
		return ErrReleased
	}
	return l.loss(now, l.ending(), l.failure)
}

// ending returns why a lease whose time has passed is over. It is called with mu held.
func (l *Lease) ending() Reason {
	if l.broken != nil {
		return Broken
	}
	return Expired
}

// loss describes a loss. It is called with mu held.
func (l *Lease) loss(now clock.Instant, reason Reason, err error) *LostError {
	e := &LostError{
		Resource: l.remote.path, Reason: reason, Duration: l.timing.duration,
		Renewed: l.granted.Wall(), Elapsed: now.Since(l.granted), Err: err,
	}
	if jump := now.JumpSince(l.granted); jump > jumpTolerance {
		e.Jump = jump
	}
	return e
}

// Stats counts what a lease has cost so far.
type Stats struct {
	Requests int           // requests sent, whatever their outcome
	Renewals int           // successful renewals
	Failures int           // failed renewals
	Waited   time.Duration // time spent waiting for another holder
}

// Stats returns the counts so far.
func (l *Lease) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Requests: int(l.remote.requests.Load()), Renewals: l.renewals, Failures: l.failures, Waited: l.waited}
}

// lose ends the lease for good. Only the first reason is kept. err is the cause; nil stands for the last failure, if any.
func (l *Lease) lose(reason Reason, err error) *LostError {
	now := l.remote.now()
	l.mu.Lock()
	lost := cmp.Or(l.lost, l.loss(now, reason, cmp.Or(err, l.failure)))
	if l.lost != nil || l.gaveBack {
		l.mu.Unlock()
		return lost
	}
	l.lost = lost
	l.change()
	l.mu.Unlock()
	// End the work before reporting: a hook that hangs must not keep the work going.
	l.end(lost)
	l.quit()
	l.emit(observe.Event{Kind: observe.Lost, Err: lost})
	return lost
}

// change wakes those who wait for a change. It is called with mu held.
func (l *Lease) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Lease) emit(e observe.Event) {
	l.events.Lock()
	defer l.events.Unlock()
	l.remote.emit(l.parent, e)
}

// enter registers a request of the caller, and bounds its context. Release waits for leave.
func (l *Lease) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gaveBack || l.lost != nil {
		return nil, nil, l.over(l.remote.now())
	}
	l.calls.Add(1)
	ctx, cancel := during(ctx, l.keeping) // Release need not wait for it
	return ctx, func() { cancel(); l.calls.Done() }, nil
}

// during returns ctx, with its values, such as the span of an operation, but it ends with another context too, for its reason.
func during(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() { stop(); cancel(nil) }
}

// Do acquires the lease, runs fn, and releases the lease when fn has returned. fn's context ends when the work must
// stop; even then the lease is renewed until fn has returned, for as long as that is possible.
//
// Do returns fn's error. If the lease was lost while fn ran, the error is a *LostError too, even if fn returned nil: fn
// may have continued while another client held the lease.
func Do(ctx context.Context, target Resource, opts *AcquireOptions, fn func(ctx context.Context, l *Lease) error) error {
	l, err := Acquire(ctx, target, opts)
	return locks.Do(ctx, l, err, ErrLost, fn)
}
