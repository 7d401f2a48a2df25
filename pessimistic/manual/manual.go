// Package manual sends the requests of a lease one at a time, for programs that keep track of a lease themselves, such as a
// script that passes its id from step to step. Nothing renews such a lease, and nothing ends the work when it is over: where
// one process holds the lease, use pessimistic.Acquire.
//
// Each function repeats its request after transient faults, up to 6 times within a minute, bounded by ctx. Repeating it has
// the same effect as sending it once. Errors: *pessimistic.HeldError if another client holds the lease,
// *pessimistic.LostError if it is not held under the id, *pessimistic.UnknownError if the outcome stays unknown, and
// otherwise an *azerr.OpError, which is pessimistic.ErrNotFound or pessimistic.ErrConflict where that applies.
//
// Requests: 1 each. For a file, Acquire costs 3 and Renew 2, because they write a heartbeat. A repetition costs as much
// again. The functions are safe for concurrent use.
//
// pessimistic.Break and pessimistic.Look need no id, and complete the set.
package manual

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Options configures a request. The zero value selects the defaults.
type Options struct {
	// Conditions are required of the resource, as far as it supports them: see lease.Support. Defaults to none.
	lease.Conditions

	// Hooks observe the call. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// Renew restarts the time of a lease. An expired lease can be renewed as long as no other client has acquired it or
// changed the resource since. For a file, Renew writes a heartbeat, and checks that the lease is still held.
func Renew(ctx context.Context, r pessimistic.Resource, id string, opts *Options) (lease.Result, error) {
	return call(ctx, r, opts, "Renew", func(ctx context.Context, s sending) (reply lease.Result, err error) {
		_, err = s.send(ctx, "renew", func(ctx context.Context) (err error) {
			reply, err = r.Renew(ctx, id, s.Conditions)
			return err
		})
		if err == nil && !strings.EqualFold(reply.ID, id) {
			// An emulator renews an expired lease for its last holder, whatever id is sent. Its response names that holder.
			return lease.Result{}, &pessimistic.LostError{Resource: r.String(), Reason: pessimistic.Taken, Err: errForeign}
		}
		return reply, err
	})
}

var errForeign = errors.New("it was renewed for another holder")

// Change replaces the id of a lease by to, a GUID; "" stands for a random one. The old id is invalid from then on. The
// reply holds the new one.
func Change(ctx context.Context, r pessimistic.Resource, id, to string, opts *Options) (lease.Result, error) {
	to = cmp.Or(to, uuid.NewString())
	return call(ctx, r, opts, "Change", func(ctx context.Context, s sending) (reply lease.Result, err error) {
		_, err = s.send(ctx, "change", func(ctx context.Context) (err error) {
			reply, err = r.Change(ctx, id, to, s.Conditions)
			return err
		})
		return reply, err
	})
}

// Release ends a lease, so that it can be acquired at once. A refusal after a lost response is a success: the id holds
// nothing.
func Release(ctx context.Context, r pessimistic.Resource, id string, opts *Options) error {
	_, err := call(ctx, r, opts, "Release", func(ctx context.Context, s sending) (lease.Result, error) {
		return lease.Result{}, s.release(ctx, id)
	})
	return err
}

// sending sends requests about one resource.
type sending struct {
	Options
	r pessimistic.Resource
}

// call runs one of the functions above, and reports it as a span.
func call(ctx context.Context, r pessimistic.Resource, opts *Options, operation string,
	run func(ctx context.Context, s sending) (lease.Result, error)) (lease.Result, error) {
	if r == nil {
		return lease.Result{}, locks.ErrNoResource
	}
	s := sending{ptr.Value(opts), r}
	ctx, end := s.Hooks.Start(ctx, observe.Span{Name: "manual." + operation, Resource: r.String()})
	reply, err := run(ctx, s)
	end(err)
	return reply, err
}

// send sends a request until its outcome is known. last is the service's last error.
func (s sending) send(ctx context.Context, op string, request func(context.Context) error) (last, err error) {
	budget := retry.Budget{Attempts: 6, Elapsed: time.Minute, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}}
	sent, err := wire.Observed(s.Hooks, s.r.String(), nil).Send(ctx, "", wire.Again{Budget: budget}, request)
	switch {
	case err == nil:
		return nil, nil
	case sent.Ambiguous > 0:
		return sent.Last, &pessimistic.UnknownError{Op: op, Resource: s.r.String(), Why: "the response was lost", Err: sent.Last}
	}
	return sent.Last, s.refusal(ctx, op, err)
}

// refusal returns the typed error for what the service has refused.
func (s sending) refusal(ctx context.Context, op string, err error) error {
	switch o := azerr.Classify(err); {
	case ctx.Err() != nil:
	case o.Kind == azerr.Held:
		return &pessimistic.HeldError{Resource: s.r.String(), State: lease.Leased, Err: err}
	case o.Kind == azerr.Lost && o.Reason == azerr.LeaseBroken:
		return &pessimistic.LostError{Resource: s.r.String(), Reason: pessimistic.Broken, Err: err}
	case o.Kind == azerr.Lost:
		return &pessimistic.LostError{Resource: s.r.String(), Reason: pessimistic.Taken, Err: err}
	}
	return azerr.Op(op, s.r.String(), err)
}

func (s sending) release(ctx context.Context, id string) error {
	last, err := s.send(ctx, "release", func(ctx context.Context) error { return s.r.Release(ctx, id, s.Conditions) })
	if errors.Is(err, pessimistic.ErrOutcomeUnknown) && azerr.Classify(last).Kind == azerr.Lost {
		return nil
	}
	return err
}
