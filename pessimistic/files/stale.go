package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/filelease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

const (
	// heartbeat is the interval at which package pessimistic renews a lease that does not expire.
	heartbeat = 10 * time.Second

	// minStale is three heartbeats, so that a single failed one does not make a holder look stale. Nor do the Date headers
	// from which its age is calculated, each of which is up to 2 s behind.
	minStale = 3 * heartbeat

	// proofOfDeath is how long BreakStale waits for another heartbeat: its interval, plus the time by which it may be
	// late.
	proofOfDeath = 3 * heartbeat / 2
)

// BreakStaleOptions are the options of BreakStale. The zero value is the default, as is nil.
type BreakStaleOptions struct {
	// Hooks receive a span for the call, and one for each request. Default: none.
	Hooks observe.Hooks
}

// BreakStale breaks the lease of a file whose holder is stale: it has written no heartbeat for maxAge, by the service's
// clock. A running holder writes one every 10 s. BreakStale looks, waits for 15 s, and looks again: the heartbeat it
// saw first may be an earlier holder's, with the current holder about to write its own.
//
// It returns a *HeldError if the holder is not that stale, or has never written a heartbeat, in which case only Break
// ends its lease; ErrNotFound; ErrLost if there is no lease to break; *UnknownError; *azerr.OpError. A holder that was merely
// slow is locked out: the service refuses its lease id, in REST and in SMB alike.
//
// The service supports no condition on a break, and does not say whose lease it is. If another client breaks and
// acquires the lease between the last look and the break, it loses a fresh lease: it notices at its next heartbeat, and
// none of its later writes succeeds. A program that acquires leases without a heartbeat is mistaken for the last holder
// that had one: use BreakStale only where all holders use this package. Requests: 3; after a lost response it looks
// again before it repeats the break.
func BreakStale(ctx context.Context, client *file.Client, maxAge time.Duration, opts *BreakStaleOptions) (err error) {
	switch {
	case client == nil:
		return errors.New("break stale: no client")
	case maxAge < minStale:
		return fmt.Errorf("break stale: maxAge: %v is less than %v, the time a running holder may need", maxAge, minStale)
	}
	s := &stale{file: filelease.NewFile(client), call: newCall(client.URL(), ptr.Value(opts).Hooks), maxAge: maxAge}
	ctx, end := s.call.start(ctx, "BreakStale")
	defer func() { end(err) }()
	err = s.look(ctx)
	if err == nil {
		err = retry.Sleep(ctx, proofOfDeath)
	}
	if err == nil {
		err = s.breaks(ctx)
	}
	return s.call.refusal(ctx, "break", false, err)
}

// stale is a lease whose holder may be gone.
type stale struct {
	file   lease.Resource
	call   *call
	maxAge time.Duration
}

// breaks breaks the lease if its holder still writes no heartbeat: it looks before every try.
func (s *stale) breaks(ctx context.Context) error {
	sent, err := s.call.wire().Send(ctx, "", wire.Again{
		Try: tryTimeout, Budget: budget(),
		Before: func(ctx context.Context, sent wire.Sent) (done bool, err error) {
			err = s.look(ctx)
			if sent.Ambiguous > 0 && errors.Is(err, pessimistic.ErrLost) {
				return true, nil // by this break, as far as can be known
			}
			return false, err
		},
		Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
			if over := f.Outcome.Kind == azerr.Lost || f.Outcome.Kind == azerr.NotFound; over && f.Ambiguous {
				return wire.Final, nil
			}
			return f.Usual()
		},
	}, func(ctx context.Context) error {
		_, err := s.file.Break(ctx, lease.Natural, lease.Conditions{})
		return err
	})
	if err != nil && sent.Ambiguous > 0 && !azerr.Named(err) {
		return &pessimistic.UnknownError{Op: "break", Resource: s.call.path, Why: "it is harmless to ask again", Err: err}
	}
	return err
}

// look checks that the lease is held, and its holder has been silent for maxAge.
func (s *stale) look(ctx context.Context) error {
	var seen lease.Observation
	_, err := s.call.repeat(ctx, "", func(ctx context.Context) (err error) {
		seen, err = s.file.Look(ctx, "")
		return err
	})
	if err != nil {
		return err
	}
	if seen.State.Free() {
		return &pessimistic.LostError{Resource: s.call.path, Reason: pessimistic.Taken, Duration: pessimistic.Infinite}
	}
	if h := LeaseInfoOf(seen); h.Heartbeat.IsZero() || seen.Date.Sub(h.Heartbeat) < s.maxAge {
		return &pessimistic.HeldError{Resource: s.call.path, Holder: h.Owner, Since: h.Since, State: seen.State}
	}
	return nil
}
