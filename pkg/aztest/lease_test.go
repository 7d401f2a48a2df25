package aztest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

const mine, yours = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"

func code(err error) string {
	if r, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return r.ErrorCode
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

type leased struct {
	t      *testing.T
	client *blockblob.Client
}

func (l leased) holder(id string) *lease.BlobClient {
	h, err := lease.NewBlobClient(l.client, &lease.BlobClientOptions{LeaseID: &id})
	if err != nil {
		l.t.Fatal(err)
	}
	return h
}

func (l leased) acquire(id string, seconds int32) string {
	_, err := l.holder(id).AcquireLease(context.Background(), seconds, nil)
	return code(err)
}

func (l leased) renew(id string) string {
	_, err := l.holder(id).RenewLease(context.Background(), nil)
	return code(err)
}

func (l leased) write(id string) string {
	c := &blob.LeaseAccessConditions{}
	if id != "" {
		c.LeaseID = &id
	}
	_, err := l.client.Upload(context.Background(), content("x"), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: c}})
	return code(err)
}

func (l leased) state() (state string) {
	p, err := l.client.GetProperties(context.Background(), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(*p.LeaseState)
}

// inABubble gives a blob to a test in which time is fake.
func inABubble(t *testing.T, test func(t *testing.T, l leased)) {
	synctest.Test(t, func(t *testing.T) {
		l := leased{t, aztest.New(nil).BlockBlob("box", "blob")}
		if got := l.write(""); got != "" {
			t.Fatal(got)
		}
		test(t, l)
	})
}

func expectCode(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestALeaseLastsExactlyItsTime(t *testing.T) {
	inABubble(t, func(t *testing.T, l leased) {
		expectCode(t, "acquire", l.acquire(mine, 15), "")
		bubble.Sleep(15*time.Second - 1)
		expectCode(t, "state", l.state(), "leased")
		expectCode(t, "acquire by another, just before", l.acquire(yours, 15), "LeaseAlreadyPresent")
		bubble.Sleep(1)
		expectCode(t, "state", l.state(), "expired")
		expectCode(t, "write with the expired id", l.write(mine), "LeaseLost")
		expectCode(t, "acquire by another, on time", l.acquire(yours, 15), "")
	})
}

func TestAnExpiredLeaseIsRenewedOnlyIfNotTaken(t *testing.T) {
	t.Run("nobody", func(t *testing.T) {
		inABubble(t, func(t *testing.T, l leased) {
			expectCode(t, "acquire", l.acquire(mine, 15), "")
			bubble.Sleep(time.Hour)
			expectCode(t, "renew under a foreign id", l.renew(yours), "LeaseIdMismatchWithLeaseOperation")
			expectCode(t, "renew", l.renew(mine), "")
			expectCode(t, "state", l.state(), "leased")
		})
	})
	t.Run("a writer", func(t *testing.T) {
		inABubble(t, func(t *testing.T, l leased) {
			expectCode(t, "acquire", l.acquire(mine, 15), "")
			bubble.Sleep(time.Hour)
			expectCode(t, "write without an id", l.write(""), "")
			expectCode(t, "renew", l.renew(mine), "LeaseIdMismatchWithLeaseOperation")
		})
	})
	t.Run("another holder", func(t *testing.T) {
		inABubble(t, func(t *testing.T, l leased) {
			expectCode(t, "acquire", l.acquire(mine, 15), "")
			bubble.Sleep(time.Hour)
			expectCode(t, "acquire by another", l.acquire(yours, 15), "")
			bubble.Sleep(time.Hour)
			expectCode(t, "renew", l.renew(mine), "LeaseIdMismatchWithLeaseOperation")
		})
	})
}

func TestABreakTakesEffectOnTime(t *testing.T) {
	inABubble(t, func(t *testing.T, l leased) {
		expectCode(t, "acquire", l.acquire(mine, 60), "")
		period := int32(10)
		resp, err := l.holder(yours).BreakLease(context.Background(), &lease.BlobBreakOptions{BreakPeriod: &period})
		if err != nil || *resp.LeaseTime != 10 {
			t.Fatalf("break: %v, %v", *resp.LeaseTime, err)
		}
		bubble.Sleep(4 * time.Second)
		expectCode(t, "state", l.state(), "breaking")
		expectCode(t, "write by the holder", l.write(mine), "")
		longer := int32(60)
		if resp, err = l.holder(yours).BreakLease(context.Background(), &lease.BlobBreakOptions{BreakPeriod: &longer}); err != nil || *resp.LeaseTime != 5 {
			t.Errorf("a longer break: %v, %v; want the 6 s that are left, rounded down as the service does", *resp.LeaseTime, err)
		}
		bubble.Sleep(6 * time.Second)
		expectCode(t, "state", l.state(), "broken")
		expectCode(t, "renew", l.renew(mine), "LeaseIsBrokenAndCannotBeRenewed")
		expectCode(t, "acquire by another", l.acquire(yours, 15), "")
	})
}

func TestALeaseOfAContainerGuardsItsDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		c := s.Container("box")
		if _, err := c.Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		id := mine
		h, err := lease.NewContainerClient(c, &lease.ContainerClientOptions{LeaseID: &id})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.AcquireLease(t.Context(), 15, nil); err != nil {
			t.Fatal(err)
		}
		_, err = c.Delete(t.Context(), nil)
		expectCode(t, "delete", code(err), "LeaseIdMissing")
		bubble.Sleep(15 * time.Second)
		_, err = c.Delete(t.Context(), nil)
		expectCode(t, "delete after expiry", code(err), "")
		_, err = c.Create(t.Context(), nil)
		expectCode(t, "create at once", code(err), "ContainerBeingDeleted")
		bubble.Sleep(30 * time.Second)
		_, err = c.Create(t.Context(), nil)
		expectCode(t, "create later", code(err), "")
	})
}
