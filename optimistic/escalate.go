package optimistic

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"github.com/azconc/azconc/optimistic/internal/protocol"
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

// escalate leases the target's resource under a new id. It returns nil if the target cannot be leased or another client
// holds a lease.
func (u *updater[T]) escalate(ctx context.Context) (*escalation, error) {
	e := &escalation{on: protocol.TraitsOf(u.target).Lease, id: uuid.NewString()}
	if e.on == nil {
		return nil, nil
	}
	_, err := protocol.Again(ctx, u.Call, func(ctx context.Context) (struct{}, error) {
		CountRequest(ctx)
		e.sent = true
		_, err := e.on.Acquire(ctx, e.id, shortestLease, lease.Conditions{})
		return struct{}{}, err
	})
	if err == nil {
		return e, nil
	}
	e.release(ctx, u.Call)
	switch azerr.Classify(err).Kind {
	case azerr.Held, azerr.NotFound, azerr.Conflict:
		return nil, nil // another client has leased it: continue without a lease
	}
	return nil, u.Fail(err)
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
		CountRequest(ctx)
		return struct{}{}, e.on.Release(ctx, e.id, lease.Conditions{})
	})
}

// held turns the refusal of a write into a conflict if another update may have leased the blob for a moment: that is
// contention too, and it passes.
func (u *updater[T]) held(err error, base azcore.ETag) error {
	if u.o.EscalateAfter <= 0 || u.o.Conditions.LeaseID != "" || azerr.Classify(err).Kind != azerr.Held || errors.Is(err, ErrOutcomeUnknown) {
		return err
	}
	return &ConflictError{Op: u.Op, Resource: u.Resource, Reason: azerr.Changed, Base: base, Elapsed: time.Since(u.Began), Err: err}
}
