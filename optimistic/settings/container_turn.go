package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/bloblease"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

const (
	turnLease = 15 * time.Second // the shortest lease that the service allows
	turnWait  = 20 * time.Second // longer than the lease of a writer that crashed
	turnTry   = 6 * time.Second  // for one request, so that a hanging request does not use up the turn
	turnGrace = 2 * time.Second  // for releasing the lease
)

// turn is a writer's turn at a container: a short lease, held while the container is compared and written. It replaces
// the ETag condition that the service does not support on containers.
//
// The lease does two things. Writers that ask for it run one after the other. And a request with its id fails once the
// lease is over (REST: "Set Container Metadata", x-ms-lease-id), so that a delayed write cannot be applied in another
// writer's turn.
type turn struct {
	client *container.Client
	on     lease.Resource
	id     string // of the lease
	own    bool   // the turn acquires and releases the lease; otherwise the lease is the caller's
}

// newTurn prepares a turn. Its id is chosen once: acquiring it again acquires the same lease, which the service allows,
// so after a lost response no unknown lease is left behind.
func newTurn(client *container.Client, callersLease string) *turn {
	t := &turn{client: client, on: bloblease.NewContainer(client), id: callersLease}
	if t.id == "" {
		t.id, t.own = uuid.NewString(), true
	}
	return t
}

// conditions returns the access conditions with the id of the lease.
func (t *turn) conditions() *container.LeaseAccessConditions {
	return &container.LeaseAccessConditions{LeaseID: &t.id}
}

// begin waits for the turn and compares the container's version with base. After an error there is no turn. Its error is never
// ambiguous for the caller's write, which has not been sent: it is protocol.ErrNotMet if the version is another one.
func (t *turn) begin(ctx context.Context, base azcore.ETag) error {
	err := t.take(ctx)
	if err == nil {
		if err = t.at(ctx, base); err != nil {
			t.giveBack(ctx)
		}
	}
	return err
}

func (t *turn) take(ctx context.Context) error {
	if !t.own {
		return nil
	}
	sent, err := wire.Wire{}.Send(ctx, "", wire.Again{
		Try:    turnTry,
		Budget: retry.Budget{Attempts: -1, Elapsed: turnWait, Backoff: retry.Backoff{Base: 20 * time.Millisecond, Cap: time.Second}},
		Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
			if f.Outcome.Kind == azerr.Held {
				return wire.Later, f.Err
			}
			return f.Usual()
		},
	}, func(ctx context.Context) error {
		reply, err := t.on.Acquire(ctx, t.id, turnLease, lease.Conditions{})
		if err == nil && reply.ID != t.id {
			err = errors.New("the service returned another id for the lease")
		}
		return err
	})
	if err == nil {
		return nil
	}
	if sent.Ambiguous > 0 {
		t.giveBack(ctx)
	}
	return unsent("take the turn at the container", err)
}

// giveBack ends the turn, even if ctx has ended. If it fails, others wait until the lease expires within 15 s.
func (t *turn) giveBack(ctx context.Context) {
	if !t.own {
		return
	}
	ctx, cancel := retry.Detached(ctx, turnGrace)
	defer cancel()
	budget := retry.Budget{Attempts: -1, Elapsed: turnGrace, Backoff: retry.Backoff{Base: 100 * time.Millisecond, Cap: 400 * time.Millisecond}}
	_, _ = wire.Wire{}.Send(ctx, "", wire.Again{Budget: budget}, func(ctx context.Context) error {
		return t.on.Release(ctx, t.id, lease.Conditions{})
	})
}

// at compares the container's version with base.
func (t *turn) at(ctx context.Context, base azcore.ETag) error {
	var seen lease.Observation
	budget := retry.Budget{Attempts: 3, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond}}
	_, err := wire.Wire{}.Send(ctx, "", wire.Again{Try: turnTry, Budget: budget}, func(ctx context.Context) (err error) {
		seen, err = t.on.Look(ctx, "")
		_, err = protocol.Sent("ETag", ptr.Optional(seen.ETag), err)
		return err
	})
	switch {
	case err != nil:
		return unsent("read the container again", err)
	case seen.ETag != base && base != azcore.ETagAny:
		return protocol.ErrNotMet
	}
	return nil
}

// write returns a Write that takes the turn, compares, sends the request, and gives the turn back.
//
// No other writer that takes turns can write during the turn, so after a lost response the same request is sent again.
// If that is refused because the turn is over, write returns the error of the lost response, which Commit has to
// resolve.
func (t *turn) write(base azcore.ETag, send protocol.Write) protocol.Write {
	return func(ctx context.Context) (etag azcore.ETag, err error) {
		if err := t.begin(ctx, base); err != nil {
			return "", err
		}
		defer t.giveBack(ctx)
		var lost error // the first response that left the outcome open
		budget := retry.Budget{Attempts: 4, Elapsed: turnLease, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}}
		_, err = wire.Wire{}.Send(ctx, "", wire.Again{Try: turnTry, Budget: budget, Note: func(_ context.Context, f wire.Failed) {
			if f.Ambiguous && lost == nil {
				lost = f.Err
			}
		}}, func(ctx context.Context) (err error) {
			etag, err = send(ctx)
			return err
		})
		if err != nil {
			return "", cmp.Or(lost, err)
		}
		return etag, nil
	}
}

// unsent returns the error of a step before the write. If that step was ambiguous, its error is kept as text only,
// because the write itself was not sent.
func unsent(doing string, err error) error {
	if azerr.Classify(err).Ambiguous() {
		return fmt.Errorf("%s: %s", doing, azerr.Summary(err))
	}
	return fmt.Errorf("%s: %w", doing, err)
}
