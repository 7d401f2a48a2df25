package conformance

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// Expiry tests expired leases. It acquires all of them at once and waits until they have expired, which takes 15
// seconds, or no time in a testing/synctest bubble.
func Expiry(t T, h Harness) {
	c := h.Container(t)
	var blobs []target
	leased := func() target {
		x := target{container: c, name: "expired-" + string(rune('a'+len(blobs)))}
		x.create(t, "")
		if got := x.holder(t, someLease).acquire(15); got != success {
			t.Fatal(got)
		}
		blobs = append(blobs, x)
		return x
	}
	// Each case has a blob of its own.
	type question struct {
		text string
		x    target
		e    expect
		ask  func(x target) said
	}
	var questions []question
	of := func(text string, e expect, ask func(x target) said) {
		questions = append(questions, question{text, leased(), e, ask})
	}
	ignores := "it does not look at the id, and revives the lease for its holder"
	of("renew", expect{service: success}, func(x target) said { return x.holder(t, someLease).renew() })
	of("renew under another id", expect{service: mismatch, emulator: success, why: ignores}, func(x target) said { return x.holder(t, anotherLease).renew() })
	of("release", expect{service: success}, func(x target) said { return x.holder(t, someLease).release() })
	of("release under another id", expect{service: mismatch}, func(x target) said { return x.holder(t, anotherLease).release() })
	of("change", expect{service: notPresent}, func(x target) said { return x.holder(t, someLease).change(anotherLease) })
	of("break", expect{service: success}, func(x target) said { return x.holder(t, anotherLease).break_(nil) })
	of("acquire under another id", expect{service: success}, func(x target) said { return x.holder(t, anotherLease).acquire(15) })
	of("acquire again", expect{service: success}, func(x target) said { return x.holder(t, someLease).acquire(15) })
	of("write under the id", expect{service: "412 LeaseLost", emulator: noLease, why: "it has no code for a lease that was there"}, func(x target) said { return x.write(someLease) })
	of("write under another id", expect{service: noLease}, func(x target) said { return x.write(anotherLease) })
	of("delete without an id", expect{service: success}, func(x target) said {
		return call(func(ctx context.Context) error { _, err := x.any().Delete(ctx, nil); return err })
	})
	// An expired lease can be renewed if the blob has not been leased or changed since.
	after := func(text string, e expect, do func(ctx context.Context, x target) error) {
		of("renew after "+text, e, func(x target) said {
			if got := call(func(ctx context.Context) error { return do(ctx, x) }); got != success {
				return "before: " + got
			}
			return x.holder(t, someLease).renew()
		})
	}
	source := h.sourceURL(t, c, "source")
	after("a lease of another holder", expect{service: mismatch}, func(ctx context.Context, x target) error {
		h := x.holder(t, anotherLease)
		if _, err := h.client.AcquireLease(ctx, 15, nil); err != nil {
			return err
		}
		_, err := h.client.ReleaseLease(ctx, nil)
		return err
	})
	after("Put Blob", expect{service: mismatch}, func(ctx context.Context, x target) error {
		_, err := x.block().Upload(ctx, text("x"), nil)
		return err
	})
	after("Set Blob Metadata", expect{service: mismatch}, func(ctx context.Context, x target) error {
		_, err := x.any().SetMetadata(ctx, nil, nil)
		return err
	})
	after("Set Blob Properties", expect{service: mismatch}, func(ctx context.Context, x target) error {
		_, err := x.any().SetHTTPHeaders(ctx, blob.HTTPHeaders{}, nil)
		return err
	})
	after("Put Block List", expect{service: mismatch}, func(ctx context.Context, x target) error {
		_, err := x.block().CommitBlockList(ctx, []string{blockID}, nil)
		return err
	})
	after("Copy Blob", expect{service: mismatch, emulator: success, why: "a copy keeps the old lease"}, func(ctx context.Context, x target) error {
		_, err := x.any().StartCopyFromURL(ctx, source, nil)
		return err
	})

	box := func() (*container.Client, func(id string) said) {
		c := h.Container(t)
		leaseFor(t, c, 15)
		return c, func(id string) said {
			holder, err := lease.NewContainerClient(c, &lease.ContainerClientOptions{LeaseID: &id})
			if err != nil {
				t.Fatal(err)
			}
			return call(func(ctx context.Context) error { _, err := holder.RenewLease(ctx, nil); return err })
		}
	}
	other, renewOther := box()
	changed, renewChanged := box()
	await(t, func() bool {
		for _, x := range blobs {
			if p, err := x.any().GetProperties(context.Background(), nil); err != nil || *p.LeaseState != lease.StateTypeExpired {
				return false
			}
		}
		for _, c := range []*container.Client{other, changed} {
			if p, err := c.GetProperties(context.Background(), nil); err != nil || *p.LeaseState != lease.StateTypeExpired {
				return false
			}
		}
		return true
	})
	for _, q := range questions {
		q.e.check(t, h, q.text, q.ask(q.x))
	}
	expect{service: mismatch, emulator: success, why: ignores}.check(t, h, "renew a container's lease under another id", renewOther(anotherLease))
	set := call(func(ctx context.Context) error { _, err := changed.SetMetadata(ctx, nil); return err })
	expect{service: success}.check(t, h, "Set Container Metadata without an id", set)
	expect{service: mismatch, emulator: success, why: "a container's lease outlives changes"}.check(t, h, "renew a container's lease after it", renewChanged(someLease))
}

// await polls until done, or fails the test after too long.
func await(t T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the leases did not expire in time")
		}
	}
}
