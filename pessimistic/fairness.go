package pessimistic

import (
	"context"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// past is a Locker's memory of a lock that it has released, in order to be fair to other processes. They poll
// every few seconds; a process that asks again right after its release would nearly always win.
type past struct {
	since     instant // when it began to hold the lock without a pause
	ended     instant
	held      time.Duration // how long it held the lock the last time
	contended time.Duration // how much longer it rests between two holdings, because other processes are waiting
	spent     bool          // it has handed the lock over as often in a row as allowed
}

// suspicion is how long a Locker rests in total, between two holdings, after it has seen another process waiting, as a
// multiple of the longest poll interval. A single rest is too short, since the Locker may find the lock free by chance.
const suspicion = 1

// maxPast bounds the number of locks that a Locker remembers before it forgets those that no longer matter.
const maxPast = 256

// rest returns how long to let others try before asking again. A Locker that has seen other processes rests for as long
// as it held the lock; one that has held the lock alone, as far as it knows, for the duration of a lease rests for a
// quarter of that. No rest is longer than the longest poll interval, by which time every waiter has polled.
func (p past) rest(now instant, limit bounds, poll retry.Backoff) time.Duration {
	if p.ended.at.IsZero() {
		return 0
	}
	gap, row := now.runSince(p.ended), p.ended.runSince(p.since)
	var want time.Duration
	switch {
	case p.contended > 0:
		want = p.held
	case p.spent, row >= limit.time:
		want = row / 4
	default:
		return 0
	}
	return min(max(want, poll.Base), poll.Cap) - gap
}

// yield rests, if due, before the service is asked. A rest ends a row of holdings. It never exceeds the time for which
// the caller is willing to wait.
func (l *line) yield(ctx context.Context, a *acquisition) error {
	now := a.claim.remote.clock().now()
	l.all.mu.Lock()
	p := l.past
	if !p.ended.at.IsZero() && now.runSince(p.ended) > a.opts.Poll.Base {
		l.past = past{}
	}
	rest := p.rest(now, a.limit(), a.opts.Poll)
	if rest > 0 {
		l.past = past{}
		l.contended = max(l.contended-rest, 0)
	}
	if p.contended > 0 {
		a.queue.pace.Slow() // at the pace of those already waiting
	}
	l.all.mu.Unlock()
	if rest <= 0 {
		return nil
	}
	rest += retry.Backoff{Base: a.opts.Poll.Base}.In(ctx).Wait(0)
	if a.opts.MaxWait > 0 {
		rest = min(rest, a.opts.MaxWait-a.queue.run())
	}
	return retry.Sleep(ctx, rest)
}

// remember records how the current holding ended. It is called with all.mu held.
func (l *line) remember(now instant) {
	if l.holding == nil {
		return
	}
	l.past = past{since: l.since, ended: now, held: now.runSince(l.holding.at), contended: l.contended, spent: l.spent}
	if l.all.past == nil || len(l.all.past) >= maxPast {
		kept := map[string]past{}
		for name, p := range l.all.past {
			if now.runSince(p.ended) < time.Minute {
				kept[name] = p
			}
		}
		l.all.past = kept
	}
	l.all.past[l.name] = l.past
}
