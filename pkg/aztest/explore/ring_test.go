package explore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/aztest/explore"
)

// part is what a client does to a blob. It returns what it was told of its own updates.
type part func(ctx context.Context, c *explore.Client) outcomes

// updates is a client that adds 1 so many times, with a lineage of one entry.
func updates(n int) part {
	return func(ctx context.Context, c *explore.Client) (o outcomes) {
		for range n {
			_, err := optimistic.Update(ctx, blobs.NewJSON[int](c.BlockBlob("box", "n")), func(_ context.Context, n *int) error { *n++; return nil },
				&optimistic.UpdateOptions{Sending: optimistic.Sending{LineageSize: 1}})
			o.add(err)
		}
		return o
	}
}

// overwrite is a client outside azconc: it replaces content and metadata.
func overwrite(ctx context.Context, c *explore.Client) outcomes {
	_, _ = c.BlockBlob("box", "n").UploadBuffer(ctx, []byte("100"), nil)
	return outcomes{foreign: true}
}

// recreate is a client outside azconc: it deletes the blob and uploads another.
func recreate(ctx context.Context, c *explore.Client) outcomes {
	_, _ = c.BlockBlob("box", "n").Delete(ctx, nil)
	return overwrite(ctx, c)
}

// rings is a program of one client that updates a blob once, and others that let its lineage expire, wipe it, or delete
// the blob. The blob's number says nothing any more: what counts is how many of a client's writes were applied.
func rings(others ...part) func(clients int) func(*explore.World) explore.Program {
	return func(clients int) func(*explore.World) explore.Program {
		return func(w *explore.World) explore.Program {
			p := increments(clients, nil)(w)
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
			p.Check = func() error {
				for i, o := range told {
					if n := w.Changes(i); !o.foreign && (n < o.applied || n > o.applied+o.unknown) {
						return fmt.Errorf("%d writes of client %d were applied, and its outcomes are %+v", n, i, o)
					}
				}
				return nil
			}
			return p
		}
	}
}

func TestALineageNeverErrsInAnySchedule(t *testing.T) {
	for name, others := range map[string][]part{
		"that expires": {updates(2)}, "that a foreign writer replaces": {overwrite}, "of a blob that is deleted": {recreate}, "of all": {updates(2), recreate},
	} {
		t.Run(name, func(t *testing.T) { explored(t, usual, rings(others...), explore.Options{}) })
	}
}
