package conformance

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// containerOperation is an operation on a container. The SDK has a field for every condition and drops most of them:
// the service supports only dates there, and only on writes.
type containerOperation struct {
	name string
	says map[string]said
	// ignores are dates that the service ignores. Conditions that says does not name are ignored too: there are none on
	// a container's ETag.
	ignores []string
	skip    []string
	run     func(ctx context.Context, c *container.Client, a *container.AccessConditions) (*azcore.ETag, error)
}

const (
	noContainer         said = "404 ContainerNotFound"
	otherContainerLease said = "412 LeaseIdMismatchWithContainerOperation"
	noContainerLease    said = "412 LeaseNotPresentWithContainerOperation"
)

var (
	containerReading = map[string]said{
		leasedWithout: success, leasedOther: otherContainerLease, leasedSame: success, freeWith: noContainerLease, missing: noContainer,
	}
	containerWriting = map[string]said{
		modifiedSince: notMet, unmodifiedLong: notMet,
		leasedWithout: success, leasedOther: otherContainerLease, leasedSame: success, freeWith: noContainerLease, missing: noContainer,
	}
)

func containerOperations() []containerOperation {
	leaseOf := func(a *container.AccessConditions) *container.LeaseAccessConditions {
		if a == nil {
			return nil
		}
		return a.LeaseAccessConditions
	}
	return []containerOperation{
		{name: "Get Container Properties", says: containerReading,
			run: func(ctx context.Context, c *container.Client, a *container.AccessConditions) (*azcore.ETag, error) {
				r, err := c.GetProperties(ctx, &container.GetPropertiesOptions{LeaseAccessConditions: leaseOf(a)})
				return r.ETag, err
			}},
		{name: "Set Container Metadata", says: containerWriting, ignores: []string{unmodifiedLong},
			run: func(ctx context.Context, c *container.Client, a *container.AccessConditions) (*azcore.ETag, error) {
				o := &container.SetMetadataOptions{Metadata: map[string]*string{"a": new("1")}}
				if a != nil {
					o.LeaseAccessConditions, o.ModifiedAccessConditions = a.LeaseAccessConditions, a.ModifiedAccessConditions
				}
				r, err := c.SetMetadata(ctx, o)
				return r.ETag, err
			}},
		{name: "Get Container ACL", says: containerReading,
			run: func(ctx context.Context, c *container.Client, a *container.AccessConditions) (*azcore.ETag, error) {
				r, err := c.GetAccessPolicy(ctx, &container.GetAccessPolicyOptions{LeaseAccessConditions: leaseOf(a)})
				return r.ETag, err
			}},
		{name: "Set Container ACL", says: containerWriting,
			run: func(ctx context.Context, c *container.Client, a *container.AccessConditions) (*azcore.ETag, error) {
				r, err := c.SetAccessPolicy(ctx, &container.SetAccessPolicyOptions{AccessConditions: a})
				return r.ETag, err
			}},
		{name: "Delete Container", says: with(containerWriting, map[string]said{leasedWithout: noLeaseID}),
			run: func(ctx context.Context, c *container.Client, a *container.AccessConditions) (*azcore.ETag, error) {
				_, err := c.Delete(ctx, &container.DeleteOptions{AccessConditions: a})
				return nil, err
			}},
		{name: "Lease Container", says: with(containerWriting, map[string]said{leasedWithout: "409 LeaseAlreadyPresent"}),
			skip: []string{leasedOther, leasedSame, freeWith},
			run: func(ctx context.Context, c *container.Client, a *container.AccessConditions) (*azcore.ETag, error) {
				holder, err := lease.NewContainerClient(c, nil)
				if err != nil {
					return nil, err
				}
				o := &lease.ContainerAcquireOptions{}
				if a != nil {
					o.ModifiedAccessConditions = a.ModifiedAccessConditions
				}
				r, err := holder.AcquireLease(ctx, 15, o)
				return r.ETag, err
			}},
		{name: "List Blobs", says: map[string]said{leasedWithout: success, missing: noContainer},
			run: func(ctx context.Context, c *container.Client, _ *container.AccessConditions) (*azcore.ETag, error) {
				_, err := c.NewListBlobsFlatPager(nil).NextPage(ctx)
				return nil, err
			}},
	}
}

// Container runs every container operation with every condition, and shows that a container's lease guards only its
// deletion.
func Container(t T, h Harness) {
	for _, op := range containerOperations() {
		t.Run(op.name, func(t T) {
			c := h.Container(t)
			expect{service: success}.check(t, h, "plain", call(func(ctx context.Context) error { _, err := op.run(ctx, c, nil); return err }))
			for _, condition := range allConditions {
				if slices.Contains(op.skip, condition) || condition == missingMatch {
					continue
				}
				c := h.Container(t)
				a := containerConditions(t, c, condition)
				want, known := op.says[condition]
				var byHand http.Header
				if !known || slices.Contains(op.ignores, condition) {
					want, byHand = success, onTheWire(&blob.AccessConditions{ModifiedAccessConditions: a.ModifiedAccessConditions})
					a.ModifiedAccessConditions = nil
				}
				got := callWith(byHand, func(ctx context.Context) error { _, err := op.run(ctx, c, a); return err })
				answer := expect{service: want}
				if condition == missing && op.name == "Delete Container" { // the container is being deleted
					answer = expect{service: success, emulator: want, why: "it deletes at once"}
				}
				answer.check(t, h, condition, got)
			}
		})
	}
	t.Run("its lease does not guard its blobs", func(t T) {
		c := h.Container(t)
		leaseContainer(t, c)
		x := target{container: c, name: "blob"}
		got := call(func(ctx context.Context) error { _, err := x.block().Upload(ctx, text("x"), nil); return err })
		expect{service: success}.check(t, h, "Put Blob in a leased container", got)
	})
	t.Run("its name stays taken for a while", func(t T) {
		c := h.Container(t)
		if _, err := c.Delete(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		e := expect{service: "409 ContainerBeingDeleted", emulator: success, why: "it deletes at once"}
		e.check(t, h, "create again", call(func(ctx context.Context) error { _, err := c.Create(ctx, nil); return err }))
	})
}

func leaseContainer(t T, c *container.Client) {
	t.Helper()
	leaseFor(t, c, 60)
}

func leaseFor(t T, c *container.Client, seconds int32) {
	t.Helper()
	holder, err := lease.NewContainerClient(c, &lease.ContainerClientOptions{LeaseID: new(someLease)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.AcquireLease(context.Background(), seconds, nil); err != nil {
		t.Fatal(err)
	}
}

func containerConditions(t T, c *container.Client, condition string) *container.AccessConditions {
	t.Helper()
	m, l := &container.ModifiedAccessConditions{}, &container.LeaseAccessConditions{}
	switch condition {
	case matchOther:
		m.IfMatch = new(azcore.ETag(`"0x8D0000000000001"`))
	case noneMatchSame, modifiedSince:
		p, err := c.GetProperties(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if condition == modifiedSince {
			m.IfModifiedSince = p.LastModified
		} else {
			m.IfNoneMatch = p.ETag
		}
	case noneMatchAny:
		m.IfNoneMatch = new(azcore.ETagAny)
	case tagsOther:
		m.IfTags = new(`"state" = 'nothing'`)
	case unmodifiedLong:
		m.IfUnmodifiedSince = new(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	case leasedWithout:
		leaseContainer(t, c)
	case leasedOther:
		leaseContainer(t, c)
		l.LeaseID = new(anotherLease)
	case leasedSame:
		leaseContainer(t, c)
		l.LeaseID = new(someLease)
	case freeWith:
		l.LeaseID = new(someLease)
	case missing:
		if _, err := c.Delete(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return &container.AccessConditions{ModifiedAccessConditions: m, LeaseAccessConditions: l}
}
