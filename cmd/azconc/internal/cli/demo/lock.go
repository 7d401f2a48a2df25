package demo

import (
	"context"
	"errors"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/fence"
)

// pausedHolder loses its lock while it is paused, and then writes: once without a fence, and once with it.
func (d *demo) pausedHolder(ctx context.Context) error {
	d.say("\n5. A holder of a lock is paused, the lock goes to another, and the first one wakes up and writes.")
	box, err := d.box(d.direct)
	if err != nil {
		return err
	}
	first, err := pessimistic.NewLocker(box, &pessimistic.LockerOptions{Owner: "the first"})
	if err != nil {
		return err
	}
	second, err := pessimistic.NewLocker(box, &pessimistic.LockerOptions{Owner: "the second"})
	if err != nil {
		return err
	}
	paused, err := first.Lock(ctx, "lock", nil)
	if err != nil {
		return err
	}
	defer paused.Release(ctx) //nolint:errcheck // it is lost, which is the point
	if _, err := second.Break(ctx, "lock", &pessimistic.BreakOptions{Now: true}); err != nil {
		return err
	}
	now, err := second.Lock(ctx, "lock", nil)
	if err != nil {
		return err
	}
	defer now.Release(ctx) //nolint:errcheck // the server ends with the demo
	client, _, err := d.start(ctx, "locked.json")
	if err != nil {
		return err
	}
	set := func(n int) func(context.Context, *counter) error {
		return func(_ context.Context, c *counter) error { c.N = n; return nil }
	}
	target := blobs.NewJSON[counter](client)
	if _, err := optimistic.Update(ctx, blobs.Fenced(now, target), set(2), nil); err != nil {
		return err
	}
	_, late := optimistic.Update(ctx, blobs.Fenced(paused, target), set(1), nil)
	d.result.FenceRefused = errors.Is(late, fence.ErrFenced)
	d.say("   with the fence of azconc lock run: %v", late)
	if _, err := client.Upload(ctx, streaming.NopCloser(strings.NewReader(`{"n":1}`)), nil); err != nil {
		return err
	}
	n, err := d.stored(ctx, client)
	d.result.LateWriteLands = n == 1
	d.say("   without a fence the late write succeeds: the blob says %d, and the second holder's write is gone.", n)
	return err
}
