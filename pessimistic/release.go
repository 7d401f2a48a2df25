package pessimistic

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
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
func (l *Lease) Release(ctx context.Context) error { return l.release(ctx, "Release", false) }

// Remove is Release, but deletes the lock's blob with the request that would have released it, for a name that is not needed
// again: the next Lock creates it again, and its fence is larger. The request carries the lease id, so that it cannot hit a
// later holder's lock.
//
// The blob is kept, and the lock released, if another goroutine or process is known to wait for it, if the blob has content or
// was not created by azconc, if it is that of a slot, whose record says who is next, and, for one request more, if the service refuses the deletion: because the permission is missing,
// or because of a snapshot. A holder of less than 0.1 s does not look for waiters: those that give up delete the blob in which they
// have signed up, and what one that was killed has left is collected by Locker.GC.
//
// Errors are those of Release. Requests: those of Release, 1 more if waiters have signed up before and none is left, and up to 2
// more after a lost response.
func (h *Hold) Remove(ctx context.Context) error {
	return h.lease.release(ctx, "Remove", h.lease.holding.freed == nil)
}

func (l *Lease) release(ctx context.Context, operation string, remove bool) error {
	l.releasing.Do(func() {
		ctx, end := l.remote.start(ctx, operation)
		l.holdOut(ctx)
		l.released = l.giveBack(ctx, remove)
		if h := l.holding; h != nil && h.freed != nil {
			select {
			case h.freed <- struct{}{}:
			default:
			}
		}
		end(l.released)
	})
	return l.released
}

func (l *Lease) giveBack(ctx context.Context, remove bool) error {
	lost := l.close()
	l.keepers.Wait() // no renewal may follow the release
	l.calls.Wait()   // nor any other request; close has cut them off
	l.giving <- struct{}{}
	defer func() { <-l.giving }()
	if l.goesOn {
		return nil // a concurrent Reclaim has succeeded: the new handle releases the lease
	}
	passed, leave := l.passOn(ctx, lost)
	if passed {
		l.emit(observe.Event{Kind: observe.HandedOver})
		return nil
	}
	defer leave()
	if lost != nil && (lost.Reason == Taken || lost.Reason == Deleted) {
		return lost // there is nothing left to release
	}
	l.mu.Lock()
	_, left := l.remaining(l.remote.now())
	l.mu.Unlock()
	if left <= 0 {
		left = releaseTry // a request whose response was lost may have renewed it
	}
	ctx, cancel := retry.Detached(ctx, min(releaseTime, left))
	defer cancel()
	if lost == nil {
		remove = l.announce(ctx, remove) && remove
	}
	began := l.remote.now()
	var err error
	if remove && lost == nil {
		err = l.sendRemoval(ctx)
	} else {
		err = l.sendRelease(ctx)
	}
	l.emit(observe.Event{Kind: observe.Released, Err: err, Took: l.remote.now().Since(began)})
	if lost != nil {
		return lost
	}
	return err
}

const (
	// unwatched is for how long a Locker may hold a lock, once or again and again, until its release looks for waiters.
	unwatched = 100 * time.Millisecond

	// announcing bounds the time for which a release is delayed by this.
	announcing = time.Second
)

// announce writes into the record that others wait, if they have signed up since the last record was written: the next to come
// then signs up too. It may fail: it serves the order, which is not the lock. It reports that nobody is known to wait;
// if the lock is to be removed, the blob of the tickets is gone then.
//
// Requests: none if the lock was held briefly and without a wait, or the record names waiters; otherwise 1, and 1 more
// if it finds any.
func (l *Lease) announce(ctx context.Context, remove bool) (alone bool) {
	h, now := l.holding, l.remote.now()
	switch {
	case h == nil || h.order.waiting() > 0:
		return false
	case !h.waited && now.RunSince(h.row) < unwatched && !(remove && h.order.issued > 0):
		return true
	}
	h.row = now
	ctx, cancel := context.WithTimeout(ctx, announcing)
	defer cancel()
	of, err := h.tickets.read(ctx, h.order.next)
	switch alone = of.next == of.issued; {
	case err != nil:
		return azerr.Has(err, "BlobNotFound")
	case alone && (remove || of.issued >= collected):
		return h.tickets.remove(ctx, of.version) == nil || !remove
	case alone && of.issued <= h.order.next:
		return true
	}
	h.order.next, h.order.issued = of.next, of.issued
	metadata := maps.Clone(h.seen.Metadata)
	if metadata[keyOrder] = h.order.String(); sizeOf(metadata) > metadataLimit {
		return false
	}
	version := h.seen.ETag
	h.seen.ETag = ""
	_ = l.remote.wire().Once(ctx, "Set Blob Metadata", announcing, func(ctx context.Context) error {
		r, err := h.client.SetMetadata(ctx, pointers(metadata), underLease(l.id, version))
		if err == nil {
			h.seen.ETag, h.seen.Metadata = ptr.Value(r.ETag), metadata
		}
		return err
	})
	return false
}

// close ends the work and the keepers.
func (l *Lease) close() *LostError {
	now := l.remote.now()
	l.mu.Lock()
	if _, hard := l.remaining(now); hard <= 0 && l.lost == nil {
		// The watchman would have noticed within a second.
		l.lost = l.loss(now, l.ending(), l.failure)
	}
	lost := l.lost
	l.gaveBack = true
	l.change()
	l.mu.Unlock()
	if lost != nil {
		l.end(lost)
	}
	l.end(ErrReleased)
	l.quit()
	return lost
}

func (l *Lease) sendRelease(ctx context.Context) error {
	err, ambiguous := l.remote.releaseUntil(ctx, l.id)
	return l.ended("release", err, ambiguous)
}

// sendRemoval deletes the lock's blob, or releases it if it must not be deleted.
func (l *Lease) sendRemoval(ctx context.Context) error {
	h := l.holding
	version := h.seen.ETag
	if !recordIn(h.seen.Metadata).own || h.seen.Size > 0 || version == "" {
		return l.sendRelease(ctx)
	}
	h.seen.ETag = "" // this process must not take it for what the next acquisition finds
	err, ambiguous := l.remote.endUntil(ctx, "Delete Blob", func(ctx context.Context) error {
		_, err := h.client.Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{
			LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &l.id},
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &version}, // nobody has put content into it
		}})
		return err
	})
	if o := azerr.Classify(err); err == nil || judge(err) != 0 || ctx.Err() != nil || o.Transient() || o.Ambiguous() {
		return l.ended("remove", err, ambiguous)
	}
	err = l.sendRelease(ctx) // the deletion was refused
	if ambiguous && errors.Is(err, ErrLost) {
		return nil // by the service that had carried it out
	}
	return err
}

// ended converts the error of the request that ends the lease.
func (l *Lease) ended(op string, err error, ambiguous bool) error {
	switch reason := judge(err); {
	case err == nil:
		return nil
	case reason != 0:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.loss(l.remote.now(), reason, err)
	case ambiguous:
		return &UnknownError{Op: op, Resource: l.remote.path, Why: "if it was not carried out, others wait for the lease to run out", Err: err}
	}
	return azerr.Op(op, l.remote.path, err)
}

const (
	releaseTime = 10 * time.Second // for all tries
	releaseTry  = 3 * time.Second  // for one
)

// releaseUntil sends a release until it is answered or ctx ends: see endUntil.
func (r remote) releaseUntil(ctx context.Context, id string) (err error, ambiguous bool) {
	return r.endUntil(ctx, "", func(ctx context.Context) error { return r.target.Release(ctx, id, lease.Conditions{}) })
}

// endUntil sends a request that ends a lease until it is answered or ctx ends. A refusal after a lost response is a success: the
// lease is gone, presumably ended by the first request. ambiguous reports that the request may have been applied although err
// is not nil.
func (r remote) endUntil(ctx context.Context, op string, request func(context.Context) error) (err error, ambiguous bool) {
	again := wire.Again{
		Try:    releaseTry,
		Budget: retry.Budget{Attempts: -1, Elapsed: -1, Backoff: retry.Backoff{Base: 250 * time.Millisecond, Cap: time.Second}},
		Pause:  func(ctx context.Context, loop *retry.Loop, _ time.Duration) error { return loop.Next(ctx, 0) },
		Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
			switch over := judge(f.Err) != 0; {
			case over && f.Ambiguous:
				return wire.Final, nil
			case over:
				return wire.Final, f.Err
			}
			return f.Usual()
		},
	}
	sent, err := r.wire().Send(ctx, op, again, request)
	return err, err != nil && sent.Ambiguous > 0
}
