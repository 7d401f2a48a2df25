package pessimistic

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// acquisition is one call of Lock in progress.
type acquisition struct {
	k      *Locker
	name   string
	parent context.Context // the caller's, from which the Hold's derives; its operation's is passed
	client *blockblob.Client
	claim  *claim
	queue  queue
	made   bool               // this call has created the lock blob
	handed bool               // the lease was handed over to this call by a goroutine of the same Locker
	passed bool               // the lease, and with it the place in the line, has been handed over
	found  *lease.Observation // of the lock, which spares the first look; nil if there is none
}

func (k *Locker) newAcquisition(ctx context.Context, name string, opts *LockOptions) (*acquisition, error) {
	client, err := k.blob(name)
	if err != nil {
		return nil, err
	}
	o := ptr.Value(opts)
	if o.MaxWait, err = waitOf("LockOptions.MaxWait", o.MaxWait); err != nil {
		return nil, err
	}
	a := &acquisition{k: k, name: name, parent: ctx, client: client, claim: newClaim(NewBlob(client), AcquireOptions{
		MaxWait: o.MaxWait, NoWait: o.NoWait, Tries: k.opts.Tries, Health: k.opts.Health, Hooks: k.opts.Hooks, clockJump: k.opts.clockJump,
	}, k.timing)}
	a.claim.remote.answered = &k.answered
	if o.Patient {
		a.claim.remote.answered = new(atomic.Bool)
		a.claim.remote.answered.Store(true)
	}
	a.queue = queue{claim: a.claim, pace: locks.Pace{Backoff: k.opts.Poll}, place: &place{
		blob: k.tickets(a.claim.remote, name), owner: k.opts.Owner, mark: uuid.NewString()[:8], cap: k.opts.Poll.Cap}}
	return a, nil
}

// hold is run by the call in front of the line: it takes over a lease that is being handed over, or asks the service. If
// the lease is lost before the call holds the lock, because it was broken or its blob deleted between the acquisition or
// hand-over and the stamp, that is just another wait.
func (a *acquisition) hold(ctx context.Context, handed *handOver) (*Hold, error) {
	for tries := 1; ; tries++ {
		var h *Hold
		var err error
		if handed != nil {
			h, err = a.inherit(ctx, handed)
		} else if base, g, failed := a.win(ctx); failed == nil {
			h, err = a.settle(ctx, base, g)
		} else {
			a.claim.abandon(ctx)
			err = azerr.Op("lock", a.claim.remote.path, failed)
		}
		o := azerr.Classify(err)
		again := errors.Is(err, ErrLost) || o.Kind == azerr.Conflict && o.Reason == azerr.Changed
		if err == nil || !again || a.passed || ctx.Err() != nil || !a.claim.wait && tries > 1 {
			return h, err
		}
		if a.claim.limit > 0 && a.claim.run() >= a.claim.limit {
			return nil, a.queue.heldError(err)
		}
		handed, a.made, a.handed = nil, false, false
		a.claim.id, a.claim.open = uuid.NewString(), false // a lease that was broken under one id cannot be acquired with it
	}
}

// win acquires the lease, at the version of the lock blob that it returns: that version contains the last holder's
// fence.
func (a *acquisition) win(ctx context.Context) (seen lease.Observation, _ grant, err error) {
	if ctx.Err() != nil {
		return seen, grant{}, context.Cause(ctx)
	}
	if a.found != nil {
		seen, a.found = *a.found, nil
	} else {
		seen, err = a.find(ctx)
	}
	for {
		if err != nil {
			return seen, grant{}, err
		}
		if seen.Size > 0 && !a.k.opts.AllowContent {
			return seen, grant{}, &ContentError{Resource: a.claim.remote.path, Size: seen.Size}
		}
		a.queue.sees(seen)
		if !a.claim.wait && !seen.State.Free() {
			return seen, grant{}, a.queue.heldError(nil)
		}
		switch {
		case a.queue.free(ctx):
		case a.claim.wait:
			err = a.queue.untilFree(ctx, nil)
			if seen = a.queue.seen; azerr.Classify(err).Kind == azerr.NotFound {
				seen, err = a.find(ctx) // deleted by GC during the wait
			}
			continue
		default:
			if err = retry.Sleep(ctx, a.queue.pause(ctx)); err == nil {
				seen, err = a.find(ctx)
			}
			continue
		}
		if err = a.awaitSecond(ctx, seen); err != nil {
			return seen, grant{}, err
		}
		g, asked := a.claim.ask(ctx, seen.ETag)
		switch o := azerr.Classify(asked); {
		case asked == nil:
			return seen, g, nil
		case ctx.Err() != nil:
			return seen, grant{}, asked
		case o.Kind == azerr.Held, o.Kind == azerr.Conflict && o.Reason == azerr.Changed, o.Kind == azerr.NotFound:
			// Another client was faster. Looking again tells which.
			seen, err = a.find(ctx)
		default:
			return seen, grant{}, asked
		}
	}
}

// find looks at the lock blob, and creates it if it does not exist.
func (a *acquisition) find(ctx context.Context) (seen lease.Observation, err error) {
	known := false // that it exists
	again := wire.Again{Try: a.claim.timing.try, Budget: a.claim.faults(), Pause: a.claim.next,
		Judge: func(ctx context.Context, f wire.Failed) (wire.Verdict, error) {
			o, err := f.Outcome, f.Err
			// Only if the blob itself is missing: creating the container is up to the caller.
			if azerr.Has(err, "BlobNotFound", "ResourceNotFound") || o.Kind == azerr.NotFound && o.Code == "" {
				if seen, err = a.create(ctx); err == nil {
					return wire.Final, nil
				}
				o = azerr.Classify(err)
			}
			// On a conflict, another client has created it at the same moment; after a lost response it may have been
			// this call. Either way the blob now exists.
			switch exists := o.Kind == azerr.Conflict || o.Kind == azerr.Held; {
			case exists && !known: // the time to wait may be over
				known = true
				return wire.AtOnce, err
			case exists || o.Transient() || o.Ambiguous():
				return wire.Later, err
			}
			return wire.Final, err
		}}
	_, err = a.claim.remote.wire().Send(ctx, "", again, func(ctx context.Context) (err error) {
		seen, err = a.claim.remote.target.Look(ctx, "")
		return err
	})
	return seen, err
}

// create creates the lock blob, if it does not exist, and marks it as created by azconc. It carries no fence: see
// tokenAfter.
func (a *acquisition) create(ctx context.Context) (seen lease.Observation, err error) {
	absent := azcore.ETagAny
	metadata := map[string]string{keyKind: kindOwn}
	err = a.claim.remote.wire().Once(ctx, "Put Blob", a.claim.timing.try, func(ctx context.Context) error {
		resp, err := a.client.Upload(ctx, streaming.NopCloser(bytes.NewReader(nil)), &blockblob.UploadOptions{
			Metadata:         pointers(metadata),
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &absent}},
		})
		seen = lease.Observation{State: lease.Available, ETag: ptr.Value(resp.ETag), Modified: ptr.Value(resp.LastModified), Metadata: metadata, Date: ptr.Value(resp.Date)}
		return err
	})
	a.made = a.made || err == nil
	return seen, err
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

// settle makes a Hold of a granted lease: it waits until requests of the last holder must have arrived, and stamps the
// lock.
func (a *acquisition) settle(ctx context.Context, base lease.Observation, g grant) (*Hold, error) {
	l := newLease(a.parent, a.claim, g.t0)
	previous := a.previous(base)
	unclean := previous.Ended == EndedByExpiry || previous.Ended == EndedByBreak
	delay := a.k.opts.TakeoverDelay
	if delay > 0 && unclean {
		if err := retry.Sleep(l.Context(), delay); err != nil {
			l.abandon(ctx, base)
			return nil, azerr.Op("lock", a.claim.remote.path, err)
		}
	}
	h, err := a.stamped(ctx, l, base, moment{g.date, g.at}, g.t0)
	switch {
	case err == nil:
		h.previous = previous
	case delay > 0 && unclean:
		l.abandon(ctx, base)
	default:
		_ = l.Release(ctx)
	}
	return h, err
}

// abandon gives up a lease so that the lock still looks unclean: after a release, the next holder would believe that
// the last one ended normally. The break is conditional on the version before the stamp, so it cannot affect a later
// holder; if it is refused, the lease expires, or is released if it never would.
func (l *Lease) abandon(ctx context.Context, base lease.Observation) {
	l.releasing.Do(func() {
		_ = l.close()
		l.keepers.Wait()
		ctx, cancel := retry.Detached(ctx, releaseTime)
		defer cancel()
		try, done := context.WithTimeout(ctx, releaseTry)
		defer done()
		if _, err := breakUntil(try, l.remote, 0, ifMatch(base.ETag)); err != nil && l.timing.infinite() {
			_ = l.sendRelease(ctx)
		}
	})
}
