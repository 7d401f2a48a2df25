package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

const (
	// minStale is three heartbeats, so that one that fails does not look like a death.
	minStale = defaultDuration

	// proofOfDeath is how long BreakStale waits for a sign of life: a heartbeat, and the time in which it may be late.
	proofOfDeath = defaultDuration / 2
)

// BreakStale breaks the lease of a file whose holder has not been heard of for maxAge, by the service's clock; a holder
// that lives is heard of every 10 s. It looks, waits for 15 s, and looks again: what it saw first may be the heartbeat of
// an earlier holder, and the present one about to write its own.
//
// It returns a *HeldError when the holder is not that old, or has left no heartbeat, in which case only Break ends its
// lease; ErrNotFound; ErrLost when there is no lease to be broken; *UnknownError; *OpError. A holder that was only slow is
// locked out by the service, which refuses its id, in REST and in SMB alike.
//
// The service has no condition for a break, and does not tell whose lease it is. Somebody who breaks and acquires between
// our last look and our break loses a lease that is young: it finds out at its next heartbeat, and none of its later
// writes succeeds. And a program that takes leases without a heartbeat is taken for the last holder that had one: only
// holders of this package should be broken so. Requests: 3; when an answer is lost, it looks before it breaks again.
func BreakStale(ctx context.Context, client *file.Client, maxAge time.Duration) error {
	switch {
	case client == nil:
		return errors.New("break stale: no client")
	case maxAge < minStale:
		return fmt.Errorf("break stale: maxAge: %v is less than %v, which a holder that lives may need", maxAge, minStale)
	}
	s := &stale{client: client, call: newFileCall(client.URL(), Hooks{}), maxAge: maxAge}
	err := s.look(ctx)
	if err == nil {
		err = retry.Sleep(ctx, proofOfDeath)
	}
	if err == nil {
		err = s.breaks(ctx)
	}
	return s.call.refusal(ctx, "break", false, err)
}

// stale is a lease whose holder may be dead.
type stale struct {
	client *file.Client
	call   *fileCall
	maxAge time.Duration
}

// breaks breaks the lease, if its holder is still silent.
func (s *stale) breaks(ctx context.Context) error {
	again, ambiguous := fileBudget().Start(), false
	for {
		err := s.look(ctx)
		if ambiguous && errors.Is(err, ErrLost) {
			return nil // by our break, as far as anybody can tell
		}
		if err != nil {
			return err
		}
		err = s.call.once(ctx, "break", func(ctx context.Context) error {
			_, err := fileLease{s.client}.breaks(ctx, 0, "")
			return err
		})
		o := azerr.Classify(err)
		ambiguous = ambiguous || o.Ambiguous()
		switch v, _ := judge(err); {
		case err == nil, v == definitive && ambiguous:
			return nil
		case v == definitive:
			return err
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case o.Transient() && again.Next(ctx, o.RetryAfter) == nil:
			continue
		}
		if ambiguous {
			return &UnknownError{Op: "break", Resource: s.call.path, Why: "it is harmless to ask again", Err: err}
		}
		return err
	}
}

// look sees whether the lease is there, and its holder silent for so long.
func (s *stale) look(ctx context.Context) error {
	var seen Observation
	_, err := s.call.repeat(ctx, "look at", func(ctx context.Context) (err error) {
		seen, err = fileLease{s.client}.look(ctx, "")
		return err
	})
	if err != nil {
		return err
	}
	if seen.State.Free() {
		return &LostError{Resource: s.call.path, Reason: Taken, Duration: Infinite}
	}
	beat, err := time.Parse(time.RFC3339, seen.Metadata[keyBeat])
	if err != nil || seen.Date.Sub(beat) < s.maxAge {
		who := recordIn(seen.Metadata)
		return &HeldError{Resource: s.call.path, Holder: who.owner, Since: who.since, State: seen.State}
	}
	return nil
}
