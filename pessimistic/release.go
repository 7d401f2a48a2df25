package pessimistic

import (
	"context"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// Release ends Context, waits for the renewer, and gives the lease back. It must be called once the work has stopped:
// from then on anybody may acquire. Further calls return the same result without doing anything.
//
// It does not need ctx to be alive: the requests are sent on a context of their own, twice at most, for 5 s each and no
// longer than the lease lasts; if giving back takes longer, the lease has ended by itself. Errors: *LostError when it was
// over already, which is for the caller to ignore or not; *UnknownError when no answer came, and others may have to wait
// for the lease to run out.
//
// Requests: 1, or none when somebody else has the lease already.
func (l *Lease) Release(ctx context.Context) error {
	l.releasing.Do(func() {
		l.holdOut(ctx)
		l.released = l.giveBack(ctx)
	})
	return l.released
}

func (l *Lease) giveBack(ctx context.Context) error {
	eager := l.wire.seams.get().eagerRelease
	lost := l.close()
	if !eager {
		l.keepers.Wait()                 // a renewal must not follow the release
		_ = l.take(context.Background()) // nor any other request; close has cut them off
		defer l.give()
		passed, left := l.passOn(ctx, lost)
		if passed {
			l.emit(Event{Kind: HandedOver})
			return nil
		}
		defer left()
	}
	if lost != nil && (lost.Reason == Taken || lost.Reason == Deleted) {
		return lost // nothing of ours is there to be released
	}
	began := l.wire.clock().now()
	err := l.sendRelease(ctx)
	l.emit(Event{Kind: Released, Err: err, Took: l.wire.clock().now().since(began)})
	if eager {
		l.keepers.Wait()
	}
	return cmpErr(lostOrNil(lost), err)
}

func lostOrNil(lost *LostError) error {
	if lost == nil {
		return nil
	}
	return lost
}

// close ends the work and the keepers.
func (l *Lease) close() *LostError {
	now := l.wire.clock().now()
	l.mu.Lock()
	if _, hard := l.remaining(now); hard <= 0 && l.lost == nil {
		// The watchman would have noticed within the second.
		l.lost = l.loss(now, l.ending(), l.failure)
	}
	lost := l.lost
	l.gaveBack = true
	l.stir()
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
	_, left := l.remaining(l.wire.clock().now())
	ids := []string{l.id}
	if l.next != "" {
		ids = append(ids, l.next)
	}
	l.mu.Unlock()
	if left <= 0 {
		left = releaseTry // it may have been renewed by a request whose answer was lost
	}
	ctx, cancel := retry.Detached(ctx, min(left, releaseTries*releaseTry))
	defer cancel()
	err := l.releaseID(ctx, ids[0])
	if v, _ := judge(err); v == definitive && len(ids) > 1 {
		err = l.releaseID(ctx, ids[1]) // the change has been carried out
	}
	return err
}

func (l *Lease) releaseID(ctx context.Context, id string) error {
	var last error
	ambiguous := false
	for try := range releaseTries {
		if try > 0 {
			if retry.Sleep(ctx, 250*time.Millisecond) != nil {
				break
			}
		}
		tried, cancel := context.WithTimeout(ctx, releaseTry)
		err := l.wire.release(tried, id)
		cancel()
		switch v, reason := judge(err); {
		case err == nil:
			return nil
		case v == definitive && ambiguous:
			return nil // it is gone, by the first of our two requests as far as anybody can tell
		case v == definitive:
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.loss(l.wire.clock().now(), reason, err)
		}
		last = err
		o := azerr.Classify(err)
		ambiguous = ambiguous || o.Ambiguous()
		if !o.Transient() && !o.Ambiguous() {
			return opError("release", l.wire.target.path, err)
		}
	}
	if !ambiguous {
		return opError("release", l.wire.target.path, last)
	}
	return &UnknownError{Op: "release", Resource: l.wire.target.path, Why: "if it was not carried out, others wait for the lease to run out", Err: last}
}
