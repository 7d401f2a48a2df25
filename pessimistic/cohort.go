package pessimistic

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// lines holds the queues within this process, one for each name that is wanted or held.
type lines struct {
	handOvers int           // how many times in a row a lock is handed over; negative: never
	most      time.Duration // how long the lock stays with this process, while others may wait

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
	waiting []chan call
	seen    lease.Observation // by the goroutine in front, while it waits; zero if it has not looked
	handed  int               // consecutive hand-overs
	since   clock.Instant     // when they began
}

// call brings the next goroutine to the front: with a lease, with an error that it would get as well, or with neither.
type call struct {
	lease *handOver
	err   error
}

// handOver is a lease that is being handed over. It is not renewed meanwhile; a hand-over takes no time.
type handOver struct {
	id      string
	granted clock.Instant
	holding holding
}

// enter joins the line, a.queue.line. It returns when the caller is in front: with a lease handed over by the previous
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
	a.queue.line = l
	if !l.busy {
		l.busy = true
		if p := ls.past[a.name]; a.found == nil && p.seen != nil && a.k.opts.TakeoverDelay == 0 && a.claim.remote.now().RunSince(p.left) < unwatched {
			a.found = p.seen
		}
		ls.mu.Unlock()
		return nil, nil
	}
	if !a.claim.wait {
		ls.mu.Unlock()
		return nil, l.heldError(a)
	}
	called := make(chan call, 1)
	l.waiting = append(l.waiting, called)
	ls.mu.Unlock()
	var over <-chan time.Time
	if a.claim.limit > 0 {
		timer := time.NewTimer(a.claim.limit - a.claim.run())
		defer timer.Stop()
		over = timer.C
	}
	select {
	case next := <-called:
		a.claim.waited = a.claim.run()
		return next.lease, next.err
	case <-ctx.Done():
		return l.desert(called, &locks.EndedWait{Held: l.heldError(a), Err: context.Cause(ctx)})
	case <-over:
		return l.desert(called, l.heldError(a))
	}
}

// desert leaves the line without having been in front. A goroutine that was called at that very moment goes to the front
// nevertheless, and gives up there.
func (l *line) desert(called chan call, err error) (*handOver, error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if i := slices.Index(l.waiting, called); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return nil, err
	}
	next := <-called // does not block: a goroutine is called under the same mutex
	return next.lease, next.err
}

// heldError reports who holds the lock: this process, or the one for which the goroutine in front waits.
func (l *line) heldError(a *acquisition) *HeldError {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if a.claim.wait {
		a.claim.waited = a.claim.run()
	}
	if h := l.holding; h != nil {
		return &HeldError{Resource: a.claim.remote.path, Holder: h.owner, Fence: h.fence, Since: h.since, State: lease.Leased, Local: true,
			Waited: a.claim.waited}
	}
	a.queue.seen = l.seen
	a.queue.seen.State = cmp.Or(l.seen.State, lease.Available)
	return a.queue.heldError(nil)
}

// sees notes what the goroutine in front has seen of the lock.
func (l *line) sees(seen lease.Observation) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.seen = seen
}

// leave calls the next goroutine to the front. An error that does not depend on the caller is passed to
// all: a hundred goroutines need not learn one after the other that the container does not exist.
func (l *line) leave(ctx context.Context, err error, now clock.Instant, released bool) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if h := l.holding; h != nil {
		p := past{token: h.fence, row: h.row, left: now}
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
			for _, called := range l.waiting {
				called <- call{err: err}
			}
			l.waiting = nil
		}
	}
	l.call(call{})
}

// call calls the goroutine that has waited longest. It is called with all.mu held.
func (l *line) call(next call) {
	if len(l.waiting) == 0 {
		l.busy = false
		delete(l.all.byName, l.name)
		return
	}
	l.waiting[0] <- next
	l.waiting = slices.Delete(l.waiting, 0, 1)
}

// holds records who holds the lock, for callers within this process.
func (l *line) holds(h *holding, now clock.Instant) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.holding, l.seen = h, lease.Observation{}
	if l.handed == 0 {
		l.since = h.at
	}
	h.row = now
	if last, again := l.all.past[l.name]; again && (last.left.IsZero() || h.at.RunSince(last.left) < unwatched) {
		h.row = last.row
	}
	l.remember(past{token: h.fence, row: h.row}, h.date.date)
}

// past is a Locker's memory of a lock that it has held.
type past struct {
	token fence.Token        // the last one
	row   clock.Instant      // see holding
	left  clock.Instant      // when it gave the lock up; zero while it holds it
	seen  *lease.Observation // what it released; nil if it does not know
}

// maxPast bounds the number of locks that a Locker remembers before it forgets those whose last token the service's clock
// has passed.
const maxPast = 256

// remember notes what is known of the lock that is held, at a time of the service's clock. It is called with all.mu held.
func (l *line) remember(p past, date time.Time) {
	if l.all.past == nil {
		l.all.past = map[string]past{}
	}
	if len(l.all.past) >= maxPast {
		for name, p := range l.all.past {
			if p.token < fence.Token(date.UnixMilli()) {
				delete(l.all.past, name)
			}
		}
	}
	l.all.past[l.name] = p
}

// known returns the last token of this lock that this process used.
func (l *line) known() fence.Token {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.all.past[l.name].token
}

// handOver hands the lease over to the next in line, if there is one and other processes need not be let in. The caller
// has stopped renewing it.
func (l *line) handOver(b *handOver, now clock.Instant) bool {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if len(l.waiting) == 0 || l.handed >= l.all.handOvers || now.Since(l.since) >= l.all.most {
		return false
	}
	l.handed++
	l.call(call{lease: b})
	return true
}

// inherit makes a Hold of a lease that the previous goroutine has handed over: it stamps the lock with a new fence,
// conditional on the version that the previous goroutine left. It sends only the stamp.
func (a *acquisition) inherit(ctx context.Context, b *handOver) (*Hold, error) {
	a.claim.id, a.handed = b.id, true
	l := newLease(a.parent, a.claim, b.granted)
	if ctx.Err() != nil {
		a.passed = true
		b.holding.least = 0
		l.holding = &b.holding
		_ = l.Release(ctx) // hands it over to the next
		return nil, azerr.Op("lock", a.claim.remote.path, context.Cause(ctx))
	}
	h, err := a.stamped(ctx, l, b.holding.seen, b.holding.date, l.remote.now())
	if err != nil {
		_ = l.Release(ctx)
		return nil, err
	}
	h.previous = Previous{Ended: EndedByRelease, Owner: b.holding.owner, Fence: b.holding.fence, Since: b.holding.since}
	return h, nil
}

// holdOut waits until the lease may be released: see LockerOptions.AtLeast.
func (l *Lease) holdOut(ctx context.Context) {
	h := l.holding
	if h == nil || h.least <= 0 {
		return
	}
	ctx, cancel := during(ctx, l.keeping) // a lost lease need not be held any longer
	defer cancel()
	_ = retry.Sleep(ctx, h.least-l.remote.now().RunSince(h.at))
}

// passOn hands the lease over to the next goroutine in line, if the lease is free of doubt, and at least
// half of its time is left: a hand-over ends the renewal that is under way, and many in a row could keep the lease from being
// renewed. The caller is in front, and the renewer has ended. If the lease is not handed over, the caller calls left after
// releasing it.
func (l *Lease) passOn(ctx context.Context, lost *LostError) (passed bool, left func()) {
	h, now := l.holding, l.remote.now()
	l.mu.Lock()
	granted := l.granted
	_, hard := l.remaining(now)
	sound := lost == nil && hard > l.timing.duration/2 && l.broken == nil && now.JumpSince(l.granted) <= jumpTolerance
	l.mu.Unlock()
	switch {
	case h == nil:
		return false, func() {}
	case sound && h.line.handOver(&handOver{l.id, granted, *h}, now):
		return true, nil
	}
	return false, func() { h.line.leave(ctx, nil, l.remote.now(), lost == nil) }
}
