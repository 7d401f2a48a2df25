package pessimistic

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// past is what a Locker remembers of a lock that it has released, in order to be fair to other processes. They look at the
// lock every few seconds; whoever asks for it again right after his release would win nearly always.
type past struct {
	since     instant // when it began to hold the lock, again and again, without a pause
	ended     instant
	held      time.Duration // the last time
	contended time.Duration // for how long more it shall rest between holdings, because it has met other processes
	spent     bool          // it has handed the lock over as often in a row as it may
}

// suspicion is for how long a Locker rests in all, between holdings, after it has met another process: so many times the
// longest wait between two looks. One rest is too short, since the Locker may find the lock free by luck.
const suspicion = 1

// maxPast bounds how many locks a Locker remembers before it forgets those that do not matter any more.
const maxPast = 256

// rest is for how long to let others have a try before asking again. Who has met others waits as long as he has held, and
// who has held the lock for a lease's time on end, alone as far as he knows, a quarter of that; nobody longer
// than the longest wait between two looks, by which time everybody has looked.
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

// yield rests, if it should, before the service is asked. A row of holdings ends with a rest.
// It never lasts beyond the time for which the caller wants to wait.
func (l *line) yield(ctx context.Context, t *taking) error {
	now := t.claim.wire.clock().now()
	l.all.mu.Lock()
	p := l.past
	if !p.ended.at.IsZero() && now.runSince(p.ended) > t.opts.Poll.Base {
		l.past = past{}
	}
	rest := p.rest(now, t.limit(), t.opts.Poll)
	if rest > 0 {
		l.past = past{}
		l.contended = max(l.contended-rest, 0)
	}
	if p.contended > 0 {
		t.queue.pace.last = t.opts.Poll.Cap // at the pace of those who wait already
	}
	l.all.mu.Unlock()
	if rest <= 0 {
		return nil
	}
	rest += time.Duration(rand.Int64N(int64(t.opts.Poll.Base) + 1))
	if t.opts.Wait > 0 {
		rest = min(rest, t.opts.Wait-t.queue.run())
	}
	return retry.Sleep(ctx, rest)
}

// remember notes how the present holding ended. It is called with all.mu held.
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
