package pessimistic

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

const defaultTries = 6

// AcquireOptions configures Acquire, TryAcquire and Do. The zero value selects the defaults.
type AcquireOptions struct {
	// Duration is how long the lease lasts without a renewal: 15 s to 60 s in whole seconds, or Infinite. The lease is
	// renewed while it is held, so Duration does not limit the work; it is how long others must wait after the holder
	// has crashed. Leases of files are always Infinite. Defaults to 30 s, for files to Infinite.
	Duration time.Duration

	// MaxWait bounds how long Acquire waits for another holder; the last attempt is made when it has passed. If MaxWait is
	// 1 s or more and a fault hits the last look or attempt, that request is repeated for up to a second. Defaults to Infinite: no bound
	// but ctx.
	MaxWait time.Duration

	// NoWait returns a *HeldError at once if another client holds the lease. Defaults to false.
	NoWait bool

	// Poll sets the interval between checks of a lease that another client holds: the first intervals are at least
	// Poll.Base, later ones up to Poll.Cap, drawn at random from a growing range. Defaults to 250 ms and 5 s.
	Poll retry.Backoff

	// Tries bounds how often a request is sent after a transient fault (a 503, a broken connection, a name that does
	// not resolve); a negative value means no bound. It applies to calls that do not wait. Calls that wait retry for as
	// long as they may wait, with one exception: if MaxWait is not set and the service has not answered at all yet, Tries
	// applies, because an outage cannot be distinguished from a wrong address. Defaults to 6.
	Tries int

	// IfMatch requires a version of the blob. Containers do not support it. Defaults to none.
	IfMatch azcore.ETag

	// LeaseID is the lease id to acquire with, a GUID. Clients that use the same id share the lease. Defaults to a
	// random id, as a lock needs it.
	LeaseID string

	// Health is called before every renewal. While it returns an error, the lease is not renewed: a process that runs
	// but cannot work loses what it holds. Health should return before its context ends. Defaults to none.
	Health func(context.Context) error

	// Hooks observe the lease. The events of a lease are reported one at a time; the function must not call methods of
	// the lease, whose renewals wait for it. Waiting is repeated every minute. Defaults to none.
	Hooks observe.Hooks

	clockJump func() time.Duration // see remote

	_ struct{}
}

func (o *AcquireOptions) withDefaults(target Resource) (AcquireOptions, timing, error) {
	out := ptr.Value(o)
	if target == nil {
		return out, timing{}, locks.ErrNoResource
	}
	if !target.Supports().Expiry {
		if out.Duration = cmp.Or(out.Duration, Infinite); out.Duration != Infinite {
			return out, timing{}, fmt.Errorf("AcquireOptions.Duration: %v: leases of files must be Infinite", out.Duration)
		}
	}
	var err error
	if out.MaxWait, err = waitOf("AcquireOptions.MaxWait", out.MaxWait); err != nil {
		return out, timing{}, err
	}
	out.Duration = cmp.Or(out.Duration, defaultDuration)
	out.Tries = cmp.Or(out.Tries, defaultTries)
	out.Poll = locks.PollDefaults(out.Poll)
	t, err := timingOf(out.Duration)
	if err != nil {
		return out, t, fmt.Errorf("AcquireOptions.%w", err)
	}
	if out.LeaseID != "" {
		id, err := uuid.Parse(out.LeaseID)
		if err != nil {
			return out, t, fmt.Errorf("AcquireOptions.LeaseID: %w; the service accepts only GUIDs", err)
		}
		out.LeaseID = id.String() // lower case, as an emulator compares it
	}
	if err := target.Supports().Check(ifMatch(out.IfMatch)); err != nil {
		return out, t, fmt.Errorf("AcquireOptions.IfMatch: %w", err)
	}
	return out, t, nil
}
