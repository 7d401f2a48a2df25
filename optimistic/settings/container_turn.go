package settings

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

const (
	turnSeconds = 15               // the shortest lease there is
	turnWait    = 20 * time.Second // longer than the lease of a writer that crashed
	turnTry     = 6 * time.Second  // for one request, so that a hanging request does not use up the turn
	turnGrace   = 2 * time.Second  // for releasing the lease
)

// turn is a writer's turn at a container: a short lease, held while the container is compared and written. It replaces
// the ETag condition that the service does not support on containers.
//
// The lease does two things. Writers that ask for it run one after the other. And a request with its id fails once the
// lease is over (REST: "Set Container Metadata", x-ms-lease-id), so that a delayed write cannot be applied in another
// writer's turn.
type turn struct {
	client *container.Client
	id     string // of the lease
	own    bool   // acquired and released by the turn; otherwise it is the caller's
}

// newTurn prepares a turn. Its id is chosen once: acquiring it again acquires the same lease, which the service allows,
// so after a lost response no unknown lease is left behind.
func newTurn(client *container.Client, callersLease string) (*turn, error) {
	if callersLease != "" {
		return &turn{client: client, id: callersLease}, nil
	}
	leasing, err := lease.NewContainerClient(client, nil)
	if err != nil {
		return nil, err
	}
	return &turn{client: client, id: protocol.Deref(leasing.LeaseID()), own: true}, nil
}

func (t *turn) leasing() (*lease.ContainerClient, error) {
	return lease.NewContainerClient(t.client, &lease.ContainerClientOptions{LeaseID: &t.id})
}

// conditions returns the access conditions with the lease's id.
func (t *turn) conditions() *container.LeaseAccessConditions {
	return &container.LeaseAccessConditions{LeaseID: &t.id}
}

// take waits for the turn. Its error is never ambiguous for the caller's write, which has not been sent.
func (t *turn) take(ctx context.Context) error {
	if !t.own {
		return nil
	}
	leasing, err := t.leasing()
	if err != nil {
		return err
	}
	waiting := retry.Budget{Attempts: -1, Elapsed: turnWait, Backoff: retry.Backoff{Base: 20 * time.Millisecond, Cap: time.Second}}.Start()
	unclear := false
	for {
		resp, err := inTurn(ctx, func(ctx context.Context) (lease.ContainerAcquireResponse, error) {
			return leasing.AcquireLease(ctx, turnSeconds, nil)
		})
		if err == nil && protocol.Deref(resp.LeaseID) != t.id {
			err = errors.New("the service returned another id for the lease")
		}
		if err == nil {
			return nil
		}
		out := azerr.Classify(err)
		unclear = unclear || out.Ambiguous()
		again := out.Kind == azerr.Held || out.Ambiguous() || out.Transient()
		if again && waiting.Next(ctx, out.RetryAfter) == nil {
			continue
		}
		if unclear {
			t.giveBack(ctx)
		}
		return unsent("take the turn at the container", err)
	}
}

// giveBack ends the turn, even if ctx has ended. If it fails, others wait until the lease expires within 15 s.
func (t *turn) giveBack(ctx context.Context) {
	if !t.own {
		return
	}
	leasing, err := t.leasing()
	if err != nil {
		return
	}
	ctx, cancel := retry.Detached(ctx, turnGrace)
	defer cancel()
	tries := retry.Budget{Attempts: 3, Elapsed: -1, Backoff: retry.Backoff{Base: 100 * time.Millisecond}}.Start()
	for {
		_, err := protocol.Request(ctx, func(ctx context.Context) (lease.ContainerReleaseResponse, error) {
			return leasing.ReleaseLease(ctx, nil)
		})
		if out := azerr.Classify(err); err == nil || !out.Ambiguous() && !out.Transient() || tries.Next(ctx, out.RetryAfter) != nil {
			return
		}
	}
}

// at compares the container's version with base.
func (t *turn) at(ctx context.Context, base azcore.ETag) error {
	tries := retry.Budget{Attempts: 3, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond}}.Start()
	for {
		props, err := inTurn(ctx, func(ctx context.Context) (container.GetPropertiesResponse, error) {
			return t.client.GetProperties(ctx, nil)
		})
		switch out := azerr.Classify(err); {
		case err == nil && protocol.Deref(props.ETag) == base:
			return nil
		case err == nil:
			return protocol.NotMet()
		case (out.Ambiguous() || out.Transient()) && tries.Next(ctx, out.RetryAfter) == nil:
		default:
			return unsent("read the container again", err)
		}
	}
}

// write returns a Write that takes the turn, compares, sends the request, and gives the turn back.
//
// No other writer that takes turns can write during the turn, so after a lost response the same request is sent again.
// If that is refused because the turn is over, write returns the error of the lost response, which commit has to
// resolve.
func (t *turn) write(base azcore.ETag, send optimistic.Write) optimistic.Write {
	return func(ctx context.Context) (azcore.ETag, error) {
		if err := t.take(ctx); err != nil {
			return "", err
		}
		defer t.giveBack(ctx)
		if err := t.at(ctx, base); err != nil {
			return "", err
		}
		tries := retry.Budget{Attempts: 4, Elapsed: turnSeconds * time.Second, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}}.Start()
		var lost error
		for {
			etag, err := inTurn(ctx, send)
			if err == nil {
				return etag, nil
			}
			out := azerr.Classify(err)
			if out.Ambiguous() && lost == nil {
				lost = err
			}
			if (out.Ambiguous() || out.Transient()) && tries.Next(ctx, out.RetryAfter) == nil {
				continue
			}
			if lost != nil {
				return "", lost
			}
			return "", err
		}
	}
}

// inTurn sends one of the requests of a turn.
func inTurn[R any](ctx context.Context, send func(context.Context) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, turnTry)
	defer cancel()
	return protocol.Request(ctx, send)
}

// unsent returns the error of a step before the write. If that step was ambiguous, its error is kept as text only,
// because the write itself was not sent.
func unsent(doing string, err error) error {
	if azerr.Classify(err).Ambiguous() {
		return fmt.Errorf("%s: %s", doing, azerr.Summary(err))
	}
	return fmt.Errorf("%s: %w", doing, err)
}
