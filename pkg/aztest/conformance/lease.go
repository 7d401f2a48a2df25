package conformance

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// holder leases a blob under an id.
type holder struct {
	client *lease.BlobClient
}

func (x target) holder(t T, id string) holder {
	t.Helper()
	client, err := lease.NewBlobClient(x.any(), &lease.BlobClientOptions{LeaseID: &id})
	if err != nil {
		t.Fatal(err)
	}
	return holder{client}
}

func (h holder) acquire(seconds int32) said {
	return call(func(ctx context.Context) error { _, err := h.client.AcquireLease(ctx, seconds, nil); return err })
}

func (h holder) renew() said {
	return call(func(ctx context.Context) error { _, err := h.client.RenewLease(ctx, nil); return err })
}

func (h holder) release() said {
	return call(func(ctx context.Context) error { _, err := h.client.ReleaseLease(ctx, nil); return err })
}

func (h holder) change(to string) said {
	return call(func(ctx context.Context) error { _, err := h.client.ChangeLease(ctx, to, nil); return err })
}

func (h holder) break_(period *int32) said {
	return call(func(ctx context.Context) error {
		_, err := h.client.BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: period})
		return err
	})
}

func (x target) write(id string) said {
	return call(func(ctx context.Context) error {
		c := &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{}}
		if id != "" {
			c.LeaseAccessConditions.LeaseID = &id
		}
		_, err := x.any().SetMetadata(ctx, map[string]*string{"a": new("1")}, &blob.SetMetadataOptions{AccessConditions: c})
		return err
	})
}

const (
	mismatch   said = "409 LeaseIdMismatchWithLeaseOperation"
	notPresent said = "409 LeaseNotPresentWithLeaseOperation"
	badHeader  said = "400 InvalidHeaderValue"
	thirdLease      = "33333333-3333-4333-8333-333333333333"
)

// Lease tests the states of a blob's lease (REST: "Lease Blob", the tables of outcomes by state), except for those that
// depend on time. The tests of the in-memory service, where time is fake, cover those.
func Lease(t T, h Harness) {
	c := h.Container(t)
	n := 0
	fresh := func(t T) target {
		n++
		x := target{container: c, name: "leased-" + string(rune('a'+n))}
		x.create(t, "")
		return x
	}
	ask := func(t T, question string, want, got said) {
		t.Helper()
		expect{service: want}.check(t, h, question, got)
	}
	t.Run("available", func(t T) {
		x := fresh(t)
		a := x.holder(t, someLease)
		ask(t, "renew", mismatch, a.renew())
		ask(t, "release", mismatch, a.release())
		ask(t, "change", notPresent, a.change(anotherLease))
		ask(t, "break", notPresent, a.break_(nil))
		for _, seconds := range []int32{0, 1, 14, 61, -2} {
			ask(t, "acquire for a bad time", badHeader, a.acquire(seconds))
		}
		expect{service: badHeader, emulator: success, why: "it takes any string for a lease id"}.
			check(t, h, "acquire with an id that is no GUID", x.holder(t, "abc").acquire(15))
	})
	t.Run("leased", func(t T) {
		x := fresh(t)
		a, b := x.holder(t, someLease), x.holder(t, anotherLease)
		ask(t, "acquire", success, a.acquire(15))
		ask(t, "acquire again under the same id", success, a.acquire(60))
		ask(t, "acquire under another id", "409 LeaseAlreadyPresent", b.acquire(15))
		ask(t, "renew", success, a.renew())
		ask(t, "renew under another id", mismatch, b.renew())
		ask(t, "write without the id", noLeaseID, x.write(""))
		ask(t, "write with another id", otherLease, x.write(anotherLease))
		ask(t, "write with the id", success, x.write(someLease))
		ask(t, "release under another id", mismatch, b.release())
		ask(t, "change under a third id", mismatch, x.holder(t, thirdLease).change(anotherLease))
		ask(t, "release", success, a.release())
		ask(t, "release again", mismatch, a.release())
		ask(t, "write with the released id", noLease, x.write(someLease))
		ask(t, "acquire under another id", success, b.acquire(-1))
		ask(t, "renew an infinite lease", success, b.renew())
	})
	t.Run("changed", func(t T) {
		x := fresh(t)
		ask(t, "acquire", success, x.holder(t, someLease).acquire(60))
		ask(t, "change", success, x.holder(t, someLease).change(anotherLease))
		ask(t, "change again, as after a lost answer", success, x.holder(t, someLease).change(anotherLease))
		ask(t, "change from the old id to a third", mismatch, x.holder(t, someLease).change(thirdLease))
		ask(t, "renew under the old id", mismatch, x.holder(t, someLease).renew())
		ask(t, "write with the old id", otherLease, x.write(someLease))
		ask(t, "write with the new id", success, x.write(anotherLease))
	})
	t.Run("breaking", func(t T) {
		x := fresh(t)
		a, b := x.holder(t, someLease), x.holder(t, anotherLease)
		ask(t, "acquire", success, a.acquire(60))
		ask(t, "break", success, b.break_(new(int32(30))))
		ask(t, "write with the id", success, x.write(someLease))
		ask(t, "write without", noLeaseID, x.write(""))
		ask(t, "renew", "409 LeaseIsBrokenAndCannotBeRenewed", a.renew())
		ask(t, "acquire again", "409 LeaseIsBreakingAndCannotBeAcquired", a.acquire(15))
		ask(t, "acquire under another id", "409 LeaseAlreadyPresent", b.acquire(15))
		ask(t, "change", "409 LeaseIsBreakingAndCannotBeChanged", a.change(thirdLease))
		ask(t, "break again", success, b.break_(nil))
		ask(t, "release", success, a.release())
		ask(t, "acquire under another id", success, b.acquire(15))
	})
	t.Run("broken", func(t T) {
		x := fresh(t)
		a, b := x.holder(t, someLease), x.holder(t, anotherLease)
		ask(t, "acquire", success, a.acquire(-1))
		ask(t, "break", success, b.break_(new(int32(0))))
		ask(t, "renew", "409 LeaseIsBrokenAndCannotBeRenewed", a.renew())
		expect{service: leaseLost, emulator: noLease, why: "it has no code for a lease that was there"}.check(t, h, "write with the id", x.write(someLease))
		ask(t, "break again", success, b.break_(nil))
		ask(t, "acquire under another id", success, b.acquire(15))
		ask(t, "release under the broken id", mismatch, a.release())
	})
	t.Run("overwritten and deleted", func(t T) {
		x := fresh(t)
		a := x.holder(t, someLease)
		ask(t, "acquire", success, a.acquire(60))
		ask(t, "write with the id", success, x.write(someLease))
		ask(t, "renew after the write", success, a.renew())
		l := &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: new(someLease)}}
		ask(t, "delete", success, call(func(ctx context.Context) error {
			_, err := x.any().Delete(ctx, &blob.DeleteOptions{AccessConditions: l})
			return err
		}))
		ask(t, "renew", noBlob, a.renew())
		ask(t, "release", noBlob, a.release())
		x.create(t, "")
		ask(t, "renew on a new blob of the name", mismatch, a.renew())
	})
}
