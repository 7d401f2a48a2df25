package optimistic

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// leasable is a target on a blob that can be leased.
type leasable interface{ leaseOn() *blob.Client }

func (b Blob[T]) leaseOn() *blob.Client  { return b.Client.BlobClient() }
func (m Metadata) leaseOn() *blob.Client { return m.Client }

// escalationLease is how long the lease of an escalated update lasts, in seconds: the shortest that the service has.
const escalationLease = 15

// escalation is a lease that keeps other writers away from a blob for one attempt.
type escalation struct {
	client *lease.BlobClient
	id     string
	sent   bool // a request that may have acquired it has been sent
}

// escalate leases the target's blob under a new id, if it is free. The id is chosen by the client, so repeating a
// request whose response was lost is harmless.
func (u *updater[T]) escalate(ctx context.Context) (*escalation, error) {
	on, ok := u.target.(leasable)
	if !ok {
		return nil, nil
	}
	e := &escalation{id: uuid.NewString()}
	var err error
	if e.client, err = lease.NewBlobClient(on.leaseOn(), &lease.BlobClientOptions{LeaseID: &e.id}); err != nil {
		return nil, u.fail(err)
	}
	_, err = again(ctx, u.call, func(ctx context.Context) (struct{}, error) {
		CountRequest(ctx)
		e.sent = true
		_, err := e.client.AcquireLease(ctx, escalationLease, nil)
		return struct{}{}, err
	})
	if err == nil {
		return e, nil
	}
	e.release(ctx, u.call)
	switch azerr.Classify(err).Kind {
	case azerr.Held, azerr.NotFound, azerr.Conflict:
		return nil, nil // another client has leased it: go on without
	}
	return nil, u.fail(err)
}

// release releases the lease, even if ctx has ended. If that fails, the lease expires.
func (e *escalation) release(ctx context.Context, c *call) {
	if e == nil || !e.sent {
		return
	}
	e.sent = false
	detached, cancel := retry.Detached(ctx, c.s.Grace)
	defer cancel()
	_, _ = again(detached, c, func(ctx context.Context) (struct{}, error) {
		CountRequest(ctx)
		_, err := e.client.ReleaseLease(ctx, nil)
		return struct{}{}, err
	})
}

// held turns the refusal of a write into a conflict if another update may have leased the blob for a moment: this too
// is contention, and it passes.
func (u *updater[T]) held(err error, base azcore.ETag) error {
	if u.o.EscalateAfter <= 0 || u.o.Conditions.LeaseID != "" || azerr.Classify(err).Kind != azerr.Held || errors.Is(err, ErrOutcomeUnknown) {
		return err
	}
	return &ConflictError{Op: u.op, Resource: u.resource, Reason: azerr.Changed, Base: base, Elapsed: time.Since(u.began), Err: err}
}
