package azgocron

import (
	"context"
	"errors"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
)

// ErrNotLeader reports that another process leads, or nobody does.
var ErrNotLeader = errors.New("this process does not lead")

// Elector is a gocron.Elector: of several schedulers, the one whose process leads runs the jobs. It is safe for concurrent use,
// except that only one Run may be active at a time.
//
// gocron passes an elector neither the job nor its time, and asks no Locker besides. So a slot during which the lead changes may
// be run twice, if the clock of the new leader lags, or by nobody. Where that matters, use a Locker in its place. A job that runs
// when the lead is lost is not cancelled.
type Elector struct{ election *election.Election }

// NewElector returns an Elector for the lead of this name. It sends no request; Run does.
func NewElector(locker *pessimistic.Locker, name string) (*Elector, error) {
	e, err := election.New(locker, name, nil)
	if err != nil {
		return nil, err
	}
	return &Elector{election: e}, nil
}

// Run runs for the lead until ctx ends, and resigns then: call it for as long as the scheduler runs, and end ctx when the scheduler
// has been shut down. Errors and requests are those of election.Election.Run; nil if ctx ended.
func (e *Elector) Run(ctx context.Context) error {
	err := e.election.Run(ctx, func(ctx context.Context, _ *pessimistic.Hold) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// IsLeader returns nil if this process leads, and ErrNotLeader otherwise. Both are judged as by election.Election.Leads, by the clocks
// of this machine: a process that could not renew its lead in time says that it leads no more before another can lead. It sends no
// request.
func (e *Elector) IsLeader(context.Context) error {
	if !e.election.Leads() {
		return ErrNotLeader
	}
	return nil
}
