package tfstate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
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
		seen, err := pessimistic.Look(ctx, pessimistic.NewBlob(client))
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
	// Without the id of a lease, the service refuses the change while the blob is leased.
	_, _ = forget(ctx, client, id, optimistic.Conditions{})
	return nil
}

// settle is how long the metadata must have been empty before a lock without a description is broken: a client that acquires
// the lease describes itself right after that.
const settle = 5 * time.Second

// ErrChanged means that the lock is not the one that was looked at.
var ErrChanged = errors.New("the lock has changed meanwhile")

// BreakUnnamed ends a lock whose metadata are empty, as seen at a version: nobody knows its id. It looks again 5 s later, and
// breaks the lease on the condition that the version is the same: a client that has described itself since has changed it. A client
// that has acquired the lease at that very moment, and not described itself yet, fails when it does, before it works. Errors:
// ErrChanged. Cost: 2 requests.
func BreakUnnamed(ctx context.Context, client *blob.Client, seen azcore.ETag) error {
	if err := retry.Sleep(ctx, settle); err != nil {
		return err
	}
	l, err := Look(ctx, client)
	switch {
	case err != nil:
		return err
	case l.ETag != seen, !errors.Is(l.Problem, ErrNoInfo):
		return ErrChanged
	case !l.Held:
		return nil
	}
	_, err = pessimistic.Break(ctx, pessimistic.NewBlob(client), &pessimistic.BreakOptions{Now: true, Conditions: lease.Conditions{IfMatch: seen}})
	switch {
	case errors.Is(err, pessimistic.ErrConflict):
		return fmt.Errorf("%w: %w", ErrChanged, err)
	case azerr.NotLeased(err):
		return nil
	}
	return err
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

// forget removes the description of the holder with an id.
func forget(ctx context.Context, client *blob.Client, id string, c optimistic.Conditions) (optimistic.Result, error) {
	return optimistic.Update(ctx, blobs.NewMetadata(client), func(_ context.Context, m *map[string]string) error {
		if i, err := InfoIn(*m); err != nil || i.ID != id {
			return optimistic.ErrSkip
		}
		delete(*m, MetadataKey)
		return nil
	}, &optimistic.UpdateOptions{Conditions: c})
}
