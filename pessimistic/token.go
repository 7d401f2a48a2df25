package pessimistic

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// moment is a reading of the service's clock: it showed date, truncated to seconds, no later than at.
type moment struct {
	date time.Time
	at   clock.Instant
}

// now returns a time that the service's clock has reached, for display only: the local clock may run faster than the
// service's.
func (m moment) now(local clock.Instant) time.Time { return m.date.Add(local.RunSince(m.at)) }

// driftMargin allows for a local clock that runs faster than the service's, by up to 1%.
const driftMargin = 10 * time.Millisecond

// until waits until the service's clock has reached due.
func (m moment) until(ctx context.Context, due time.Time, local clock.Instant) error {
	if !due.After(m.date) {
		return nil
	}
	return retry.Sleep(ctx, due.Sub(m.date)+driftMargin-local.RunSince(m.at))
}

// farAhead is how far a stored token may be ahead of the service's clock for a new holder to wait until the clock
// reaches it. A token further ahead was not written by azconc, or the service's clock was set back.
const farAhead = time.Minute

// tokenAfter returns the next holder's token, and the time that the service's clock must have reached before the token
// may be used.
//
// The invariant is that a token is never used before its own second has begun on the service's clock: so every token
// used up to a change of the lock blob is smaller than the first whole second after that change. Hence a token taken
// from that next second is larger than all earlier ones, whether or not they are still stored. This is needed when the
// blob stores no token, because it was deleted and recreated or its metadata was replaced; when the stored token was
// not written together with its nonce; and when this process knows a larger one.
func (a *acquisition) tokenAfter(base lease.Observation, date time.Time) (fence.Token, time.Time, error) {
	stored, err := fence.Parse(base.Metadata[fence.Key])
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("%w; the stored fence is damaged: restore the last one", err)
	}
	quick := a.k.opts.QuickFirst && stored == 0 && a.made
	known, now := a.queue.line.known(), date
	if !quick && (!recordIn(base.Metadata).sealed || known > stored) {
		if next := base.Modified.Truncate(time.Second).Add(time.Second); next.After(date) {
			date = next
		}
	}
	token, err := fence.Next(max(stored, known), date)
	if err != nil {
		return 0, time.Time{}, err
	}
	due := token.Second()
	if quick || due.Sub(now) > farAhead {
		return token, time.Time{}, nil
	}
	return token, due, nil
}

// awaitSecond waits before the acquisition if the token will have to be taken from the next second. With the local clock as
// an estimate of when that second begins, it has usually begun by the time the acquisition is answered, and the holder
// need not wait while it holds the lease.
func (a *acquisition) awaitSecond(ctx context.Context, seen lease.Observation) error {
	if a.k.opts.QuickFirst && a.made || recordIn(seen.Metadata).sealed || seen.Date.Truncate(time.Second).After(seen.Modified) {
		return nil
	}
	wall := a.claim.remote.now().Wall()
	return retry.Sleep(ctx, wall.Truncate(time.Second).Add(time.Second+2*driftMargin).Sub(wall))
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
