package manual

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// AcquireOptions configures Acquire. The zero value selects the defaults.
type AcquireOptions struct {
	Options

	// Duration is how long the lease lasts: 15 s to 60 s in whole seconds, or pessimistic.Infinite. Leases of files are
	// always Infinite. Defaults to 60 s, for files to Infinite.
	Duration time.Duration

	// Wait is how long to wait while another client holds the lease; pessimistic.Infinite waits for as long as ctx lasts.
	// Defaults to 0: Acquire does not wait.
	Wait time.Duration

	// LeaseID is the id to acquire with, a GUID. If this id holds the lease already, the lease is extended or shortened.
	// Defaults to a random id.
	LeaseID string

	_ struct{}
}

// Acquire leases a resource, and does not renew the lease. The id is chosen before the request is sent, so that a lost
// response cannot leave a lease behind whose id is unknown: the reply has the id also if the error is not nil.
//
// If the outcome stays unknown, the lease may be held under that id: the error is an *pessimistic.UnknownError. Under a
// random id, Acquire tries to release it for 5 s before that; if that succeeds, the error is the last one of the service.
func Acquire(ctx context.Context, r pessimistic.Resource, opts *AcquireOptions) (lease.Result, error) {
	o := ptr.Value(opts)
	return call(ctx, r, &o.Options, "Acquire", func(ctx context.Context, s sending) (lease.Result, error) {
		if err := o.setDuration(r.Supports().Expiry); err != nil {
			return lease.Result{}, err
		}
		return s.acquire(ctx, &o)
	})
}

func (s sending) acquire(ctx context.Context, o *AcquireOptions) (lease.Result, error) {
	id := cmp.Or(o.LeaseID, uuid.NewString())
	loop := retry.Budget{Attempts: -1, Elapsed: o.Wait, Backoff: retry.Backoff{Base: 500 * time.Millisecond, Cap: 5 * time.Second}}.Start()
	var held *pessimistic.HeldError // by the last refusal
	for {
		reply := lease.Result{}
		last, err := s.send(ctx, "acquire", func(ctx context.Context) (err error) {
			reply, err = s.r.Acquire(ctx, id, o.Duration, s.Conditions)
			return err
		})
		reply.ID = id
		if err == nil {
			return reply, nil
		}
		if _, granted := errors.AsType[*locks.GrantedError](last); granted {
			s.abandon(ctx, id) // a file without a heartbeat would stay leased
		}
		out := azerr.Classify(last)
		if out.Kind == azerr.Held {
			held = &pessimistic.HeldError{Resource: s.r.String(), State: lease.Leased, Err: last}
			if azerr.Has(last, "LeaseIsBreakingAndCannotBeAcquired") {
				held.State = lease.Breaking
			}
			if loop.Next(ctx, 0) == nil {
				continue
			}
		}
		// A refusal means that another client holds the lease, since no other client has this id. An ambiguous last
		// response proves nothing.
		if last != nil && (!out.Ambiguous() || o.LeaseID == "" && s.abandon(ctx, id)) {
			err = s.refusal(ctx, "acquire", last)
		}
		if held != nil && o.Wait != 0 {
			held.Waited = loop.Elapsed()
		}
		switch {
		case errors.Is(err, pessimistic.ErrOutcomeUnknown):
		case held != nil && ctx.Err() != nil:
			err = &locks.EndedWait{Held: held, Err: context.Cause(ctx)}
		case out.Kind == azerr.Held:
			err = held
		}
		return reply, err
	}
}

// abandon releases a lease that may have been acquired although no response said so, and reports whether it is not held
// under the id now.
func (s sending) abandon(ctx context.Context, id string) bool {
	ctx, cancel := retry.Detached(ctx, 5*time.Second)
	defer cancel()
	s.Conditions = lease.Conditions{}
	err := s.release(ctx, id)
	return err == nil || azerr.Classify(err).Kind == azerr.Lost
}

// setDuration sets the default of Duration, or returns an error that says what it may be.
func (o *AcquireOptions) setDuration(expires bool) error {
	d := o.Duration
	switch {
	case d == pessimistic.Infinite:
	case d == 0 && !expires:
		o.Duration = pessimistic.Infinite
	case d == 0:
		o.Duration = time.Minute
	case !expires:
		return fmt.Errorf("AcquireOptions.Duration: %v: leases of files must be Infinite", d)
	case d < 15*time.Second || d > time.Minute || d%time.Second != 0:
		return fmt.Errorf("AcquireOptions.Duration: %v is neither 15s to 60s in whole seconds nor Infinite", d)
	}
	return nil
}
