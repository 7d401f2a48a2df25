package explore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/aztest/explore"
)

// part is what a client does to a blob. It returns the outcomes of its own updates.
type part func(ctx context.Context, a blobAccount) outcomes

type blobAccount interface {
	BlockBlob(containerName, blobName string) *blockblob.Client
}

// updates is a client that adds 1 so many times.
func updates(n int, confirm optimistic.Confirm) part {
	return func(ctx context.Context, c blobAccount) (o outcomes) {
		for range n {
			_, err := optimistic.Update(ctx, blobs.NewJSON[int](c.BlockBlob("box", "n")), func(_ context.Context, n *int) error { *n++; return nil },
				&optimistic.UpdateOptions{Backoff: steady(100 * time.Millisecond), SendOptions: optimistic.SendOptions{Pause: steady(100 * time.Millisecond), ConfirmConflicts: confirm}})
			o.add(err)
		}
		return o
	}
}

// overwrite is a client outside azconc: it replaces content and metadata.
func overwrite(ctx context.Context, c blobAccount) outcomes {
	_, _ = c.BlockBlob("box", "n").UploadBuffer(ctx, []byte("100"), nil)
	return outcomes{foreign: true}
}

// keep is a client outside azconc: it replaces the content that it has read, on the condition that it is unchanged, and
// keeps the metadata.
func keep(ctx context.Context, c blobAccount) outcomes {
	blob := c.BlockBlob("box", "n")
	if p, err := blob.GetProperties(ctx, nil); err == nil {
		_, _ = blob.UploadBuffer(ctx, []byte("100"), &blockblob.UploadBufferOptions{Metadata: p.Metadata, AccessConditions: ifMatch(p.ETag)})
	}
	return outcomes{foreign: true}
}

func ifMatch(etag *azcore.ETag) *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: etag}}
}

// recreate is a client outside azconc: it deletes the blob and uploads another.
func recreate(ctx context.Context, c blobAccount) outcomes {
	_, _ = c.BlockBlob("box", "n").Delete(ctx, nil)
	return overwrite(ctx, c)
}

// rings is a program of one client that updates a blob once, and others that let its lineage expire, wipe it, or delete
// the blob. The blob's number says nothing any more: what counts is how many of a client's writes were applied.
func rings(confirm optimistic.Confirm, others ...part) func(clients int) func(*explore.World) explore.Program {
	return func(clients int) func(*explore.World) explore.Program {
		return func(w *explore.World) explore.Program {
			p := increments(clients, nil)(w)
			// With a lineage that begins before the clients do, its beginning proves nothing about their writes.
			if o := updates(1, confirm)(context.Background(), w.Service); o.applied != 1 {
				panic("the first update was not applied")
			}
			told := make([]outcomes, clients)
			for i := range p.Clients {
				does := updates(1, confirm)
				if i > 0 {
					does = others[(i-1)%len(others)]
				}
				p.Clients[i] = func(ctx context.Context, c *explore.Client) error {
					told[i] = does(ctx, c)
					return nil
				}
			}
			p.Check = func() error { return writesAreAsTold(w, told) }
			return p
		}
	}
}

// twins is a program of clients that each update a blob once, and twice at the same time in another goroutine with the
// same client of the SDK. A lineage of one entry remembers only the latest write of each.
func twins(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		const always = optimistic.ConfirmAlways
		p := rings(always, updates(1, always))(clients)(w)
		told := make([]outcomes, clients)
		for i := range p.Clients {
			p.Clients[i] = func(ctx context.Context, c *explore.Client) error {
				shared := sharedBlob{c.BlockBlob("box", "n")}
				var once outcomes
				var both sync.WaitGroup
				both.Go(func() { once = updates(1, always)(ctx, shared) })
				twice := updates(2, always)(ctx, shared)
				both.Wait()
				told[i] = outcomes{applied: once.applied + twice.applied, unknown: once.unknown + twice.unknown}
				return nil
			}
		}
		p.Check = func() error { return writesAreAsTold(w, told) }
		return p
	}
}

// sharedBlob is an account whose every blob is the same client of the SDK.
type sharedBlob struct{ client *blockblob.Client }

func (s sharedBlob) BlockBlob(string, string) *blockblob.Client { return s.client }

func writesAreAsTold(w *explore.World, told []outcomes) error {
	for i, o := range told {
		if n := w.Changes(i); !o.foreign && (n < o.applied || n > o.applied+o.unknown) {
			return fmt.Errorf("%d writes of client %d were applied, and its outcomes are %+v", n, i, o)
		}
	}
	return nil
}

// TestALineageThatIsTooShortNeverErrsInAnySchedule allows for choices that are not offered again: the goroutines of one
// client send equal requests, and race.
func TestALineageThatIsTooShortNeverErrsInAnySchedule(t *testing.T) {
	o := explore.Options{Faults: 1, Schedules: 2000}
	if raced {
		o.Schedules = sample
	}
	r := explore.Run(t, twins(1), &o)
	t.Log(r)
	if r.Violation != "" || r.Diverged*20 > r.Schedules && !raced {
		t.Errorf("convicted after %d schedules, %d diverged: %s", r.Schedules, r.Diverged, r.Violation)
	}
}

// others are the clients that make a lineage useless to another one.
func others(confirm optimistic.Confirm) map[string][]part {
	return map[string][]part{
		"that expires": {updates(2, confirm)}, "that a foreign writer replaces": {overwrite}, "that a foreign writer keeps": {keep}, "of a blob that is deleted": {recreate},
		"of all": {updates(2, confirm), recreate},
	}
}

// ofRings returns the bounds of a program of these others.
func ofRings(name string) []bounds {
	all := and(writes, 2, 3, 0)
	switch name {
	case "that expires": // each of them writes twice
		all = and(several, 3, 1, 0, 2, 3, 0)
	case "of all": // the second of two clients is that of "that expires"
		all = append(deeper(3, 1, 0), bounds{clients: 3}, bounds{clients: 3, faults: 1, preemptions: 1})
	}
	return all
}

// TestALineageNeverErrsInAnySchedule: with a network that delivers requests twice, a conflict that the lineage does not
// confirm is an unknown outcome.
func TestALineageNeverErrsInAnySchedule(t *testing.T) {
	for name, others := range others(optimistic.ConfirmAlways) {
		t.Run(name, func(t *testing.T) {
			explored(t, ofRings(name), rings(optimistic.ConfirmAlways, others...), explore.Options{})
		})
	}
}

// TestAConflictIsBelievedWhereNothingDeliversTwice: on such a path every other fault leaves the outcomes true, although
// conflicts are believed.
func TestAConflictIsBelievedWhereNothingDeliversTwice(t *testing.T) {
	for _, confirm := range []optimistic.Confirm{optimistic.ConfirmByPath, optimistic.ConfirmNever} {
		for name, others := range others(confirm) {
			t.Run(fmt.Sprintf("%s, confirm %d", name, confirm), func(t *testing.T) {
				to := ofRings(name)
				if confirm == optimistic.ConfirmNever { // it differs in nothing that more clients or faults could reach
					to = and(usual, 2, 3, 0)
				}
				explored(t, to, rings(confirm, others...), explore.Options{Kinds: withoutTwice})
			})
		}
	}
}

// TestNothingIsUnknownInAnyScheduleWithoutAFault, no matter which other clients write, delete or drop the lineage.
func TestNothingIsUnknownInAnyScheduleWithoutAFault(t *testing.T) {
	for name, others := range others(optimistic.ConfirmByPath) {
		t.Run(name, func(t *testing.T) {
			certain := func(clients int) func(*explore.World) explore.Program {
				return func(w *explore.World) explore.Program {
					p := rings(optimistic.ConfirmByPath, others...)(clients)(w)
					check := p.Check
					p.Check = func() error {
						for i, err := range w.Errors() {
							if errors.Is(err, optimistic.ErrOutcomeUnknown) {
								return fmt.Errorf("client %d: %w", i, err)
							}
						}
						return check()
					}
					return p
				}
			}
			explored(t, []bounds{{clients: 2}, {clients: 3}}, certain, explore.Options{})
		})
	}
}
