package files

import (
	"context"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
)

// requests returns how many requests were sent, including those that list handles.
func (c *call) requests() int {
	n := int(c.sent.Load())
	if c.wait != nil {
		n += int(c.wait.asks.sent.Load())
	}
	return n
}

// refusal converts the response to a request about a file into a typed error: *InUseError, *HeldError, *LostError,
// *UnknownError for a write, *azerr.OpError.
func (c *call) refusal(ctx context.Context, op string, write bool, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, azerr.Named(err):
		return azerr.Op(op, c.path, err)
	}
	o := azerr.Classify(err)
	reason, used := inUse(err)
	switch {
	case used:
		return &InUseError{Resource: c.path, Reason: reason, Err: err}
	case o.Kind == azerr.Held:
		return &pessimistic.HeldError{Resource: c.path, State: lease.Leased, Err: err}
	case o.Kind == azerr.Lost && o.Reason == azerr.LeaseBroken:
		return &pessimistic.LostError{Resource: c.path, Reason: pessimistic.Broken, Duration: pessimistic.Infinite, Err: err}
	case o.Kind == azerr.Lost:
		return &pessimistic.LostError{Resource: c.path, Reason: pessimistic.Taken, Duration: pessimistic.Infinite, Err: err}
	case write && o.Ambiguous():
		return &pessimistic.UnknownError{Op: op, Resource: c.path, Err: err}
	}
	return azerr.Op(op, c.path, err)
}
