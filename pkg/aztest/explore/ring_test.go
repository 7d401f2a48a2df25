package explore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

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

// updates is a client that adds 1 so many times, with a lineage of one entry.
func updates(n int) part {
	return func(ctx context.Context, c blobAccount) (o outcomes) {
		for range n {
			_, err := optimistic.Update(ctx, blobs.NewJSON[int](c.BlockBlob("box", "n")), func(_ context.Context, n *int) error { *n++; return nil },
				&optimistic.UpdateOptions{Backoff: steady(100 * time.Millisecond), Sending: optimistic.Sending{LineageSize: 1, Pause: steady(100 * time.Millisecond)}})
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

// recreate is a client outside azconc: it deletes the blob and uploads another.
func recreate(ctx context.Context, c blobAccount) outcomes {
	_, _ = c.BlockBlob("box", "n").Delete(ctx, nil)
	return overwrite(ctx, c)
}

// rings is a program of one client that updates a blob once, and others that let its lineage expire, wipe it, or delete
// the blob. The blob's number says nothing any more: what counts is how many of a client's writes were applied.
func rings(others ...part) func(clients int) func(*explore.World) explore.Program {
	return func(clients int) func(*explore.World) explore.Program {
		return func(w *explore.World) explore.Program {
			p := increments(clients, nil)(w)
			// With a lineage that begins before the clients do, its beginning proves nothing about their writes.
			if o := updates(1)(context.Background(), w.Service); o.applied != 1 {
				panic("the first update was not applied")
			}
			told := make([]outcomes, clients)
			for i := range p.Clients {
				does := updates(1)
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
		p := rings(updates(1))(clients)(w)
		told := make([]outcomes, clients)
		for i := range p.Clients {
			p.Clients[i] = func(ctx context.Context, c *explore.Client) error {
				shared := sharedBlob{c.BlockBlob("box", "n")}
				var once outcomes
				var both sync.WaitGroup
				both.Go(func() { once = updates(1)(ctx, shared) })
				twice := updates(2)(ctx, shared)
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

func TestALineageNeverErrsInAnySchedule(t *testing.T) {
	for name, others := range map[string][]part{
		"that expires": {updates(2)}, "that a foreign writer replaces": {overwrite}, "of a blob that is deleted": {recreate}, "of all": {updates(2), recreate},
	} {
		t.Run(name, func(t *testing.T) { explored(t, and(usual, 2, 3, 0), rings(others...), explore.Options{}) })
	}
}
