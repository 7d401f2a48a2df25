package tfstate

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/manual"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// Lock is the lock of a state as any client can see it.
type Lock struct {
	lease.Observation
	Held    bool  // the blob is leased, or its lease is being broken
	Info    Info  // the holder, or the last one that did not unlock; zero with a Problem
	Problem error // why Info is empty: ErrNoInfo, or that the metadata cannot be read
}

// Infinite reports whether the lock never ends by itself, like those of the azurerm backend.
func (l Lock) Infinite() bool { return l.Held && l.Term == lease.InfiniteTerm }

// Look returns the lock of a state. Errors: pessimistic.ErrNotFound if there is no such blob. Cost: 1 request, repeated after
// transient faults up to 5 times.
func Look(ctx context.Context, client *blob.Client) (Lock, error) {
	loop := retry.Budget{Attempts: 6, Elapsed: time.Minute, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 5 * time.Second}}.Start()
	for {
		seen, err := pessimistic.Look(ctx, pessimistic.NewBlob(client), nil)
		if err == nil {
			l := Lock{Observation: seen, Held: !seen.State.Free()}
			l.Info, l.Problem = InfoIn(seen.Metadata)
			return l, nil
		}
		if !azerr.Classify(err).Transient() || loop.Next(ctx, 0) != nil {
			return Lock{}, err
		}
	}
}

// Release releases the lock with an id, and no other one: the service refuses the id of a lease that has ended. Then it removes
// the description, unless the state is locked again meanwhile; a description that stays is harmless. The error is
// pessimistic.ErrLost if the lock is not held under the id. Cost: 3 requests.
func Release(ctx context.Context, client *blob.Client, id string) error {
	if err := manual.Release(ctx, pessimistic.NewBlob(client), id, nil); err != nil {
		return err
	}
	_, _ = forget(ctx, client, id)
	return nil
}

// describe stores the description of the holder of the lease.
func describe(ctx context.Context, client *blob.Client, i Info) (optimistic.Result, error) {
	text := i.text()
	return optimistic.Update(ctx, blobs.NewMetadata(client), func(_ context.Context, m *map[string]string) error {
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)[MetadataKey] = text
		return nil
	}, &optimistic.UpdateOptions{Conditions: optimistic.Conditions{LeaseID: i.ID}})
}

// forget removes the description of a holder who has released the lock. Removed earlier, it would leave a lock without a description, at
// which azurerm ends. Without the id of a lease, the service refuses the change if the blob is leased again.
func forget(ctx context.Context, client *blob.Client, id string) (optimistic.Result, error) {
	return optimistic.Update(ctx, blobs.NewMetadata(client), func(_ context.Context, m *map[string]string) error {
		if i, err := InfoIn(*m); err != nil || i.ID != id {
			return optimistic.ErrSkip
		}
		delete(*m, MetadataKey)
		return nil
	}, nil)
}
