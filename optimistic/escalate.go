package optimistic

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// shortestLease is the duration of the lease of an escalated update, in seconds: the shortest that the service allows.
const shortestLease = 15

// escalation is a lease that excludes other writers from a resource for one attempt.
type escalation struct {
	on   lease.Resource
	id   string
	sent bool // a request that may have acquired it has been sent
}

// escalate leases the target's resource once, after enough conflicts. It does without if the target cannot be leased or
// another client holds a lease.
func (u *updater[T]) escalate(ctx context.Context) error {
	if k := u.o.EscalateAfter; k == 0 || u.Res.Conflicts < k || u.leased != nil || u.o.Conditions.LeaseID != "" {
		return nil
	}
	leased := sealed.TraitsOf(u.target).Lease
	if leased == nil {
		return nil
	}
	e := &escalation{on: leased(), id: uuid.NewString()}
	_, err := protocol.Again(ctx, u.Call, func(ctx context.Context) (lease.Result, error) {
		e.sent = true
		return e.on.Acquire(ctx, e.id, shortestLease, lease.Conditions{})
	})
	if err == nil {
		u.leased, u.o.Conditions.LeaseID = e, e.id
		return nil
	}
	e.release(ctx, u.Call)
	switch azerr.Classify(err).Kind {
	case azerr.Held, azerr.NotFound, azerr.Conflict:
		return nil // another client has leased it: continue without a lease
	}
	return u.Fail(err)
}

// release releases the lease, even if ctx has ended. If that fails, the lease expires.
func (e *escalation) release(ctx context.Context, c *protocol.Call) {
	if e == nil || !e.sent {
		return
	}
	e.sent = false
	detached, cancel := retry.Detached(ctx, c.S.Grace)
	defer cancel()
	_, _ = protocol.Again(detached, c, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, e.on.Release(ctx, e.id, lease.Conditions{})
	})
}

// refused takes the refusal of a write for a conflict, too, if another update may have leased the blob for a moment: that
// is contention, and it passes.
func (u *updater[T]) refused(w protocol.Change, err error) (open *protocol.Refusal, again bool, cause error) {
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok && u.o.EscalateAfter > 0 && u.o.Conditions.LeaseID == "" && azerr.Classify(err).Kind == azerr.Held && !errors.Is(err, ErrOutcomeUnknown) {
		conflict = &ConflictError{Op: u.Op, Resource: u.Resource, Reason: azerr.Changed, Base: w.Base.ETag, Elapsed: time.Since(u.Began), Err: err}
	} else if !ok {
		return nil, false, err
	}
	return &protocol.Refusal{Change: w, Conflict: conflict, Contended: w.Base.Lineage}, true, err
}
