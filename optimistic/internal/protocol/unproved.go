package protocol

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Unproved is a write that leaves no lineage: the creation or deletion of a queue or a table, or an unconditional
// write. If its response is lost, it is sent again, and only the last response is known.
type Unproved struct {
	Op, Resource string
	Name         string // of the span, package.Operation
	Request      string // as the REST reference names it
	Hooks        observe.Hooks
	Send         func(ctx context.Context) error

	// Done are the error codes with which the service answers a repetition because the first request was applied. They
	// count as success, no matter which client's request was applied.
	Done []string

	// Anyone is set if the service also accepts the write, as a success, after another client has had it applied: then
	// the success of a repetition does not show that this write, under its conditions, was applied.
	Anyone bool

	// Exists are the error codes that mean that the resource already exists. After a lost response the outcome is
	// unknown, for the reason Why: the first request may have created it. Otherwise the error is ErrExists.
	Exists []string
	Why    string
}

// Do sends the write. Result counts the requests; the ETag is up to Send.
func (u Unproved) Do(ctx context.Context) (r Result, err error) {
	began := time.Now()
	ctx, end := u.Hooks.Start(ctx, observe.Span{Name: u.Name, Resource: u.Resource})
	defer func() { end(err) }()
	budget := retry.Budget{Attempts: 6, Elapsed: time.Minute, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}}
	s, err := wire.Observed(u.Hooks, u.Resource, func() { r.Requests++ }).Send(ctx, u.Request, wire.Again{Try: 30 * time.Second, Budget: budget}, u.Send)
	r.Attempts, r.Ambiguous, r.Elapsed = 1, s.Ambiguous, time.Since(began)
	last := cmp.Or(s.Last, err)
	lost := s.Ambiguous > 0
	switch {
	case lost && err == nil && u.Anyone:
		err = &azerr.UnknownError{Op: u.Op, Resource: u.Resource, Why: "the response was lost, and the repetition succeeds no matter who was first", Elapsed: r.Elapsed}
	case err == nil:
		r.Changed = true
	case lost && azerr.Has(last, u.Done...):
		r.Changed, r.Resolved, err = true, s.Ambiguous, nil
	case lost:
		why := "the response was lost"
		if azerr.Has(last, u.Exists...) {
			why = cmp.Or(u.Why, why)
		}
		err = &azerr.UnknownError{Op: u.Op, Resource: u.Resource, Why: why, Elapsed: r.Elapsed, Err: azerr.Clean(last)}
	case azerr.Has(err, u.Exists...):
		err = azerr.Op(u.Op, u.Resource, fmt.Errorf("%w: %w", azerr.ErrExists, azerr.Clean(err)))
	case azerr.Classify(err).Kind == azerr.NotFound:
		err = &azerr.NotFoundError{Op: u.Op, Resource: u.Resource, Err: azerr.Clean(err)}
	default:
		err = azerr.Op(u.Op, u.Resource, azerr.Clean(err))
	}
	return r, err
}
