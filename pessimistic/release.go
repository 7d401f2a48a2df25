package pessimistic

import (
	"context"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Release ends Context, waits for the renewer, and releases the lease. It must be called once the work has stopped:
// from then on anybody may acquire the lease. Further calls return the same result without doing anything.
//
// Release works even if ctx has ended: the request is sent under a context of its own, and repeated after a transient
// fault, about once a second for 10 s at most and no longer than the lease lasts. Release returns when the request has
// been answered or that time has passed. Errors: *LostError if the lease was already over, which the caller may ignore;
// *UnknownError if there was no response, so that others may have to wait until the lease expires; *azerr.OpError if the
// service refused or could not be reached, with the same consequence.
//
// Requests: 1 if it is answered, or none if the lease is known to be lost.
func (l *Lease) Release(ctx context.Context) error {
	l.releasing.Do(func() {
		ctx, end := l.remote.start(ctx, "Release")
		l.holdOut(ctx)
		l.released = l.giveBack(ctx)
		end(l.released)
	})
	return l.released
}

func (l *Lease) giveBack(ctx context.Context) error {
	lost := l.close()
	l.keepers.Wait()                 // no renewal may follow the release
	l.calls.Wait()                   // nor any other request; close has cut them off
	_ = l.take(context.Background()) // nor any change or break
	defer l.give()
	if l.reclaimed() {
		return nil // a concurrent Reclaim has succeeded: the new handle releases the lease
	}
	passed, left := l.passOn(ctx, lost)
	if passed {
		l.emit(observe.Event{Kind: observe.HandedOver})
		return nil
	}
	defer left()
	if lost != nil && (lost.Reason == Taken || lost.Reason == Deleted) {
		return lost // there is nothing left to release
	}
	ctx, cancel := retry.Detached(ctx, releaseTime)
	defer cancel()
	if lost == nil {
		l.announce(ctx)
	}
	began := l.remote.clock().now()
	err := l.sendRelease(ctx)
	l.emit(observe.Event{Kind: observe.Released, Err: err, Took: l.remote.clock().now().since(began)})
	if lost != nil {
		return lost
	}
	return err
}

func (l *Lease) reclaimed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.goesOn
}

// close ends the work and the keepers.
func (l *Lease) close() *LostError {
	now := l.remote.clock().now()
	l.mu.Lock()
	if _, hard := l.remaining(now); hard <= 0 && l.lost == nil {
		// The watchman would have noticed within a second.
		l.lost = l.loss(now, l.ending(), l.failure)
	}
	lost := l.lost
	l.gaveBack = true
	l.moveGate()
	l.mu.Unlock()
	if lost != nil {
		l.end(lost)
	}
	l.end(ErrReleased)
	l.quit()
	return lost
}

// sendRelease sends the release until it is answered.
func (l *Lease) sendRelease(ctx context.Context) error {
	l.mu.Lock()
	_, left := l.remaining(l.remote.clock().now())
	ids := []string{l.id}
	if l.next != "" {
		ids = append(ids, l.next)
	}
	l.mu.Unlock()
	if left <= 0 {
		left = releaseTry // a request whose response was lost may have renewed it
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err := l.releaseID(ctx, ids[0])
	if v, _ := judge(err); v == definitive && len(ids) > 1 {
		err = l.releaseID(ctx, ids[1]) // the change was applied
	}
	return err
}

// releaseID sends the release until it is answered or ctx ends.
func (l *Lease) releaseID(ctx context.Context, id string) error {
	err, ambiguous := l.remote.releaseUntil(ctx, id)
	switch v, reason := judge(err); {
	case err == nil:
		return nil
	case v == definitive:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.loss(l.remote.clock().now(), reason, err)
	case ambiguous:
		return &UnknownError{Op: "release", Resource: l.remote.path, Why: "if it was not carried out, others wait for the lease to run out", Err: err}
	}
	return azerr.Op("release", l.remote.path, err)
}

const (
	releaseTime = 10 * time.Second // for all tries
	releaseTry  = 3 * time.Second  // for one
)

// releaseUntil sends a release until it is answered or ctx ends. A refusal after a lost response is a success: the
// lease is gone, presumably released by the first request. ambiguous reports that the release may have been applied
// although err is not nil.
func (r remote) releaseUntil(ctx context.Context, id string) (err error, ambiguous bool) {
	again := wire.Again{
		Try:    releaseTry,
		Budget: retry.Budget{Attempts: -1, Elapsed: -1, Backoff: retry.Backoff{Base: 250 * time.Millisecond, Cap: time.Second}},
		Pause:  func(ctx context.Context, loop *retry.Loop, _ time.Duration) error { return loop.Next(ctx, 0) },
		Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
			if v, _ := judge(f.Err); v == definitive && f.Ambiguous {
				return wire.Final, nil
			} else if v == definitive {
				return wire.Final, f.Err
			}
			return f.Usual()
		},
	}
	sent, err := r.wire().Send(ctx, "", again, func(ctx context.Context) error {
		return r.target.Release(ctx, id, lease.Conditions{})
	})
	return err, err != nil && sent.Ambiguous > 0
}
