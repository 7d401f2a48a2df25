package pessimistic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/retry"
)

// AcquireOptions tunes Acquire, TryAcquire and Do. The zero value is the default.
type AcquireOptions struct {
	// Duration is how long the lease lasts without being renewed: 15 s to 60 s in whole seconds, or Infinite. It is
	// renewed for as long as it is held, so it is not how long the work may take, but how long others must wait after
	// the holder has crashed. A file's is Infinite. Defaults to 30 s, and to Infinite for files.
	Duration time.Duration

	// Wait bounds how long Acquire waits for another holder; the last attempt is made when it is over. Negative or 0
	// means no bound but the end of ctx. TryAcquire does not wait. Defaults to 0.
	Wait time.Duration

	// Poll spaces the looks at a lease that another holds: the first waits are at least Poll.Base, later ones up to
	// Poll.Cap, drawn at random from a range that grows with the last one. Defaults to 250 ms and 5 s.
	Poll retry.Backoff

	// Tries bounds how often one request is sent after a transient fault (a 503, a connection that breaks, a name that
	// does not resolve); negative means no bound. It is for calls that do not wait. Those that do ride out faults for as
	// long as they may wait, with one exception: with no Wait, and as long as the service has not answered at all, Tries
	// counts, because an outage cannot be told from a wrong address. Defaults to 6.
	Tries int

	// IfMatch demands a version of the blob. Containers cannot be asked for one. Defaults to none.
	IfMatch azcore.ETag

	// LeaseID is the id to acquire with, a GUID. Who uses the same id shares the lease. Defaults to a random one, which
	// is what a lock needs.
	LeaseID string

	// Health is asked before every renewal. While it returns an error, the lease is not renewed: a process that lives
	// but cannot work loses what it holds. It should return before its context ends. Defaults to none.
	Health func(context.Context) error

	// Hooks let the program watch. Defaults to silence.
	Hooks Hooks

	seams    *seams
	requests *atomic.Int64 // to which its requests are added; nil for a counter of its own

	_ struct{}
}

func (o *AcquireOptions) withDefaults(target Resource) (AcquireOptions, timing, error) {
	var out AcquireOptions
	if o != nil {
		out = *o
	}
	if onlyInfinite(target) {
		if out.Duration = cmp.Or(out.Duration, Infinite); out.Duration != Infinite {
			return out, timing{}, fmt.Errorf("AcquireOptions.Duration: %v: the leases of a file are Infinite", out.Duration)
		}
	}
	out.Duration = cmp.Or(out.Duration, defaultDuration)
	out.Tries = cmp.Or(out.Tries, 6)
	out.Poll = pollDefaults(out.Poll)
	t, err := timingOf(out.Duration)
	if err != nil {
		return out, t, fmt.Errorf("AcquireOptions.%w", err)
	}
	if out.LeaseID != "" {
		id, err := uuid.Parse(out.LeaseID)
		if err != nil {
			return out, t, fmt.Errorf("AcquireOptions.LeaseID: %w; the service takes GUIDs only", err)
		}
		out.LeaseID = id.String() // lower case, in which an emulator compares it
	}
	if out.IfMatch != "" && target.leasable != nil && !target.leasable.conditional() {
		return out, t, errors.New("AcquireOptions.IfMatch: the leases of a container take no ETag condition")
	}
	return out, t, nil
}

func pollDefaults(b retry.Backoff) retry.Backoff {
	b.Base = cmp.Or(b.Base, 250*time.Millisecond)
	b.Cap = max(cmp.Or(b.Cap, 5*time.Second), b.Base)
	return b
}

// pace draws the waits between looks: from the upper half of a range that doubles up to the cap. Full jitter would start
// again near zero each time, and a look costs a request; and the more the waits differ, the more do the turns of those
// who wait.
type pace struct {
	retry.Backoff
	last time.Duration
}

func (p *pace) next() time.Duration {
	random := p.Rand
	if random == nil {
		random = rand.Float64
	}
	p.last = min(max(2*p.last, 2*p.Base), p.Cap)
	least := max(p.last/2, p.Base)
	return least + time.Duration(random()*float64(p.last-least))
}
