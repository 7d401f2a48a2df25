package pessimistic

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pessimistic/internal/tickets"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// lines holds the queues within this process, one for each name that is wanted or held.
type lines struct {
	mu     sync.Mutex
	byName map[string]*line
	past   map[string]past
}

// line is the queue of goroutines in this process that want one lock. The first talks to the service; the others send
// no requests, and the lock is handed over to them in memory, first come, first served.
type line struct {
	all  *lines
	name string

	// all.mu guards the fields below.
	busy    bool // a goroutine is in front: asking the service, or holding
	holding *holding
	waiting []*place
	handed  int     // consecutive hand-overs
	since   instant // when they began
}

// place is one goroutine's place in the line.
type place struct{ called chan turn }

// turn passes from the goroutine in front to the next: a lease, an error that the next would get as well, or
// neither.
type turn struct {
	lease *handOver
	err   error
}

// handOver is a lease that is being handed over. It is not renewed meanwhile; a hand-over takes no time.
type handOver struct {
	claim   *claim
	granted instant
	holding holding
}

// holding is a holder's knowledge of the lock blob, whose version only the holder can change.
type holding struct {
	line  *line
	owner string
	token fence.Token
	seen  lease.Observation // the blob as stamped by the holder
	since time.Time         // when it acquired the lock, by the service's clock
	date  moment            // what it knows of the service's clock
	at    instant           // when it acquired the lock, by the local clock
	limit bounds

	order   tickets.Order // as stamped by the holder
	waited  bool          // another holder was seen before
	row     instant       // since when this Locker has held the lock again and again without looking for waiters
	tickets tickets.Blob
	client  *blockblob.Client
}

// bounds keep a busy process from holding a lock forever while others wait.
type bounds struct {
	times int
	time  time.Duration
}

// enter joins the line, t.line. It returns when it is the caller's turn: with a lease handed over by the previous
// goroutine, or with none, in which case the caller asks the service. Errors: *HeldError, the cause of ctx, or the error
// that the goroutine in front got. After an error there is nothing to leave.
func (ls *lines) enter(ctx context.Context, a *acquisition) (*handOver, error) {
	ls.mu.Lock()
	l := ls.byName[a.name]
	if l == nil {
		if ls.byName == nil {
			ls.byName = map[string]*line{}
		}
		l = &line{all: ls, name: a.name}
		ls.byName[a.name] = l
	}
	a.line = l
	if !l.busy {
		l.busy = true
		if p := ls.past[a.name]; a.found == nil && p.seen != nil && a.k.opts.TakeoverDelay == 0 && a.claim.remote.clock().now().runSince(p.left) < unwatched {
			a.found = p.seen
		}
		ls.mu.Unlock()
		return nil, nil
	}
	if !a.claim.wait {
		defer ls.mu.Unlock()
		return nil, l.heldError(a)
	}
	p := &place{called: make(chan turn, 1)}
	l.waiting = append(l.waiting, p)
	ls.mu.Unlock()
	var over <-chan time.Time
	if a.opts.MaxWait > 0 {
		timer := time.NewTimer(a.opts.MaxWait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case called := <-p.called:
		a.queue.waited = a.queue.run()
		return called.lease, called.err
	case <-ctx.Done():
		return l.desert(p, context.Cause(ctx))
	case <-over:
		ls.mu.Lock()
		a.queue.waited = a.opts.MaxWait
		err := l.heldError(a)
		ls.mu.Unlock()
		return l.desert(p, err)
	}
}

// desert leaves the line without having had a turn. If the goroutine was called at that very moment, it takes the turn
// nevertheless, and gives up in it.
func (l *line) desert(p *place, err error) (*handOver, error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if i := slices.Index(l.waiting, p); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return nil, err
	}
	called := <-p.called // does not block: a place is removed from the line and filled under the same mutex
	return called.lease, called.err
}

// heldError reports that this process already holds the lock. It is called with all.mu held.
func (l *line) heldError(a *acquisition) *HeldError {
	e := &HeldError{Resource: a.claim.remote.path, State: lease.Leased, Local: true, Waited: a.queue.waited}
	if l.holding != nil {
		e.Holder, e.Fence, e.Since = l.holding.owner, l.holding.token, l.holding.since
	}
	return e
}

// leave gives the next goroutine its turn with the service. An error that does not depend on the caller is passed to
// all: a hundred goroutines need not learn one after the other that the container does not exist.
func (l *line) leave(ctx context.Context, err error, now instant, released bool) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if h := l.holding; h != nil {
		p := past{token: h.token, row: h.row, left: now}
		if released && h.seen.ETag != "" {
			seen := h.seen
			seen.State, seen.Date, p.seen = lease.Available, h.date.date, &seen
		}
		l.remember(p, h.date.date)
	}
	l.holding, l.handed = nil, 0
	if err != nil && ctx.Err() == nil {
		switch azerr.Classify(err).Kind {
		case azerr.NotFound, azerr.Unauthorised, azerr.BadInput, azerr.Permanent:
			for _, p := range l.waiting {
				p.called <- turn{err: err}
			}
			l.waiting = nil
		}
	}
	l.call(turn{})
}

// call gives the turn to the goroutine that has waited longest. It is called with all.mu held.
func (l *line) call(next turn) {
	if len(l.waiting) == 0 {
		l.busy = false
		delete(l.all.byName, l.name)
		return
	}
	p := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	p.called <- next
}

// holds records who holds the lock, for callers within this process.
func (l *line) holds(h *holding, now instant) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.holding = h
	if l.handed == 0 {
		l.since = h.at
	}
	h.row = now
	if last, again := l.all.past[l.name]; again && (last.left.at.IsZero() || h.at.runSince(last.left) < unwatched) {
		h.row = last.row
	}
	l.remember(past{token: h.token, row: h.row}, h.date.date)
}

// handOver hands the lease over to the next in line, if there is one and it is not other processes' turn. The caller
// has stopped renewing it.
func (l *line) handOver(b *handOver) bool {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	limit := b.holding.limit
	if len(l.waiting) == 0 || limit.times < 0 {
		return false
	}
	if l.handed >= limit.times || b.claim.remote.clock().now().since(l.since) >= limit.time {
		return false
	}
	l.handed++
	l.call(turn{lease: b})
	return true
}

// inherit makes a Hold of a lease that the previous goroutine has handed over: it stamps the lock with a new fence,
// conditional on the version that the previous goroutine left. It sends only the stamp.
func (a *acquisition) inherit(ctx context.Context, b *handOver) (*Hold, error) {
	b.claim.tries, b.claim.wait, b.claim.waited = a.claim.tries, a.claim.wait, a.queue.waited
	b.claim.limit, b.claim.began = a.claim.limit, a.claim.began
	b.claim.remote.answered = a.claim.remote.answered
	a.claim, a.handed = b.claim, true
	l := newLease(a.parent, a.claim, b.granted, a.opts)
	if ctx.Err() != nil {
		a.passed = true
		l.entrust(&b.holding, 0)
		_ = l.Release(ctx) // hands it over to the next
		return nil, azerr.Op("lock", a.claim.remote.path, context.Cause(ctx))
	}
	h, err := a.stamped(ctx, l, b.holding.seen, b.holding.date, l.remote.clock().now())
	if err != nil {
		_ = l.Release(ctx)
		return nil, err
	}
	h.previous = Previous{Ended: EndedByRelease, Owner: b.holding.owner, Fence: b.holding.token, Since: b.holding.since}
	return h, nil
}

// entrust gives a lease what it needs in order to be handed over, and the minimum time it must be held.
func (l *Lease) entrust(h *holding, least time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holding, l.least = h, least
}

// holdOut waits until the lease may be released.
func (l *Lease) holdOut(ctx context.Context) {
	l.mu.Lock()
	var left time.Duration
	if l.holding != nil && l.least > 0 {
		left = l.least - l.remote.clock().now().runSince(l.holding.at)
	}
	l.mu.Unlock()
	if left <= 0 {
		return
	}
	ctx, cancel := l.bound(ctx) // a lost lease need not be held any longer
	defer cancel()
	_ = retry.Sleep(ctx, left)
}

// passOn hands the lease over to the next goroutine in line, if the lease is free of doubt, and at least
// half of its time is left: a hand-over ends the renewal that is under way, and many in a row could keep the lease from being
// renewed. The caller has the turn, and the renewer has ended. If the lease is not handed over, the caller calls left after
// releasing it.
func (l *Lease) passOn(ctx context.Context, lost *LostError) (passed bool, left func()) {
	l.mu.Lock()
	t := l.holding
	now := l.remote.clock().now()
	_, hard := l.remaining(now)
	sound := lost == nil && hard > l.timing.duration/2 && l.broken == nil && now.jumpSince(l.granted) <= jumpTolerance
	b := &handOver{granted: l.granted}
	if t != nil {
		w := newRemote(l.remote.target, l.remote.hooks)
		w.clockJump = l.remote.clockJump
		b.holding, b.claim = *t, &claim{remote: w, timing: l.timing, id: l.id}
	}
	l.mu.Unlock()
	switch {
	case t == nil:
		return false, func() {}
	case sound && t.line.handOver(b):
		return true, nil
	}
	return false, func() { t.line.leave(ctx, nil, l.remote.clock().now(), lost == nil) }
}
