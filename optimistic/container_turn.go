package optimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

const (
	turnSeconds = 15               // the shortest lease there is
	turnWait    = 20 * time.Second // longer than a lease that a crashed writer has left behind
	turnTry     = 6 * time.Second  // for one request in it, so that one that hangs does not use it up
	turnGrace   = 2 * time.Second  // for giving it back
)

// turn is a writer's turn at a container: a short lease, held while the container is compared and written. It stands in
// for the ETag condition that the service does not take on containers.
//
// The lease does two things. Writers that ask for it come one after the other. And a request that carries its id fails
// once the lease is over (REST: "Set Container Metadata", x-ms-lease-id), so that a write which is late on its way cannot
// land in another's turn.
type turn struct {
	client *container.Client
	id     string // of the lease
	own    bool   // taken here, and given back here; otherwise it is the caller's
}

// newTurn prepares a turn. Its id is made once: taking it again is taking the same lease again, which the service allows,
// so a lost answer leaves no lease that nobody knows of.
func newTurn(client *container.Client, callersLease string) (*turn, error) {
	if callersLease != "" {
		return &turn{client: client, id: callersLease}, nil
	}
	leasing, err := lease.NewContainerClient(client, nil)
	if err != nil {
		return nil, err
	}
	return &turn{client: client, id: deref(leasing.LeaseID()), own: true}, nil
}

func (t *turn) leasing() (*lease.ContainerClient, error) {
	return lease.NewContainerClient(t.client, &lease.ContainerClientOptions{LeaseID: &t.id})
}

// conditions carries the lease's id to a request.
func (t *turn) conditions() *container.LeaseAccessConditions {
	return &container.LeaseAccessConditions{LeaseID: &t.id}
}

// take waits for the turn. Its error is never ambiguous as far as the caller's write is concerned: that has not been
// sent.
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
		if err == nil && deref(resp.LeaseID) != t.id {
			err = errors.New("the service gave the lease another id")
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

// giveBack ends the turn, also when ctx has ended. If it fails, the lease ends by itself within 15 s, and others wait.
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
		_, err := request(ctx, func(ctx context.Context) (lease.ContainerReleaseResponse, error) {
			return leasing.ReleaseLease(ctx, nil)
		})
		if out := azerr.Classify(err); err == nil || !out.Ambiguous() && !out.Transient() || tries.Next(ctx, out.RetryAfter) != nil {
			return
		}
	}
}

// at compares the container with the version that a write is based on.
func (t *turn) at(ctx context.Context, base azcore.ETag) error {
	tries := retry.Budget{Attempts: 3, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond}}.Start()
	for {
		props, err := inTurn(ctx, func(ctx context.Context) (container.GetPropertiesResponse, error) {
			return t.client.GetProperties(ctx, nil)
		})
		switch out := azerr.Classify(err); {
		case err == nil && deref(props.ETag) == base:
			return nil
		case err == nil:
			return notMet()
		case (out.Ambiguous() || out.Transient()) && tries.Next(ctx, out.RetryAfter) == nil:
		default:
			return unsent("read the container again", err)
		}
	}
}

// write makes a Write of a request that carries the turn's id: take the turn, compare, send, give it back.
//
// While the turn lasts nobody else writes, so a lost answer is met by sending the same again. If that ends in a refusal
// (the turn is over), the lost answer is returned, for it is what counts: the caller's protocol goes on from there.
func (t *turn) write(base azcore.ETag, send Write) Write {
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

// inTurn sends one of the requests that make up a turn.
func inTurn[R any](ctx context.Context, send func(context.Context) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, turnTry)
	defer cancel()
	return request(ctx, send)
}

// unsent describes what kept a write from being sent. An ambiguous answer to something before it loses its chain: the
// write itself is not in doubt.
func unsent(doing string, err error) error {
	if azerr.Classify(err).Ambiguous() {
		return fmt.Errorf("%s: %s", doing, azerr.Summary(err))
	}
	return fmt.Errorf("%s: %w", doing, err)
}
