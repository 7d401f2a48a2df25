package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// containerOperation is an operation on a container. The SDK has a field for every condition and drops most of them: the
// service knows only dates there, and those on writes.
type containerOperation struct {
	name string
	says map[string]said
	skip []string
	run  func(ctx context.Context, c *container.Client, a *container.AccessConditions) (*azcore.ETag, error)
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
		// An ETag changes nothing: the service does not take one, and the SDK does not send it.
		matchOther: success, modifiedSince: notMet, unmodifiedLong: notMet,
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
		{name: "Set Container Metadata", says: containerWriting, skip: []string{unmodifiedLong},
			run: func(ctx context.Context, c *container.Client, a *container.AccessConditions) (*azcore.ETag, error) {
				o := &container.SetMetadataOptions{Metadata: map[string]*string{"a": ref("1")}}
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

// Container asks every container operation every question, and shows that a container's lease guards its deletion only.
func Container(t *testing.T, h Harness) {
	for _, op := range containerOperations() {
		t.Run(op.name, func(t *testing.T) {
			c := h.Container(t)
			expect{service: success}.check(t, h, "plain", call(func(ctx context.Context) error { _, err := op.run(ctx, c, nil); return err }))
			for _, condition := range allConditions {
				if _, known := op.says[condition]; !known || contains(op.skip, condition) {
					continue
				}
				c := h.Container(t)
				a := containerConditions(t, c, condition)
				got := call(func(ctx context.Context) error { _, err := op.run(ctx, c, a); return err })
				expect{service: op.says[condition]}.check(t, h, condition, got)
			}
		})
	}
	t.Run("its lease does not guard its blobs", func(t *testing.T) {
		c := h.Container(t)
		leaseContainer(t, c)
		x := target{container: c, name: "blob"}
		got := call(func(ctx context.Context) error { _, err := x.block().Upload(ctx, text("x"), nil); return err })
		expect{service: success}.check(t, h, "Put Blob in a leased container", got)
	})
	t.Run("its name stays taken for a while", func(t *testing.T) {
		c := h.Container(t)
		if _, err := c.Delete(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		e := expect{service: "409 ContainerBeingDeleted", emulator: success, why: "it deletes at once"}
		e.check(t, h, "create anew", call(func(ctx context.Context) error { _, err := c.Create(ctx, nil); return err }))
	})
}

func leaseContainer(t *testing.T, c *container.Client) {
	t.Helper()
	holder, err := lease.NewContainerClient(c, &lease.ContainerClientOptions{LeaseID: ref(someLease)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.AcquireLease(context.Background(), 60, nil); err != nil {
		t.Fatal(err)
	}
}

func containerConditions(t *testing.T, c *container.Client, condition string) *container.AccessConditions {
	t.Helper()
	m, l := &container.ModifiedAccessConditions{}, &container.LeaseAccessConditions{}
	switch condition {
	case matchOther:
		m.IfMatch = ref(azcore.ETag(`"0x8D0000000000001"`))
	case modifiedSince:
		p, err := c.GetProperties(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		m.IfModifiedSince = p.LastModified
	case unmodifiedLong:
		m.IfUnmodifiedSince = ref(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	case leasedWithout:
		leaseContainer(t, c)
	case leasedOther:
		leaseContainer(t, c)
		l.LeaseID = ref(anotherLease)
	case leasedSame:
		leaseContainer(t, c)
		l.LeaseID = ref(someLease)
	case freeWith:
		l.LeaseID = ref(someLease)
	case missing:
		if _, err := c.Delete(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return &container.AccessConditions{ModifiedAccessConditions: m, LeaseAccessConditions: l}
}

// Versions checks what the ETag stands for: which operations change it, and that it never returns.
func Versions(t *testing.T, h Harness) {
	c := h.Container(t)
	ctx := context.Background()
	x := target{container: c, name: "versions"}
	x.create(t, "")
	current := func() azcore.ETag {
		p, err := x.any().GetProperties(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		return *p.ETag
	}
	seen := map[azcore.ETag]bool{current(): true}
	holder, err := lease.NewBlobClient(x.any(), &lease.BlobClientOptions{LeaseID: ref(someLease)})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name    string
		changes bool
		run     func() error
	}{
		{"Put Blob", true, func() error { _, err := x.block().Upload(ctx, text("x"), nil); return err }},
		{"Put Blob, the same again", true, func() error { _, err := x.block().Upload(ctx, text("x"), nil); return err }},
		{"Set Blob Metadata", true, func() error { _, err := x.any().SetMetadata(ctx, map[string]*string{"a": ref("1")}, nil); return err }},
		{"Set Blob Properties", true, func() error { _, err := x.any().SetHTTPHeaders(ctx, blob.HTTPHeaders{}, nil); return err }},
		{"Put Block", false, func() error { _, err := x.block().StageBlock(ctx, blockID, text("s"), nil); return err }},
		{"Put Block List", true, func() error { _, err := x.block().CommitBlockList(ctx, []string{blockID}, nil); return err }},
		{"Set Blob Tags", false, func() error { _, err := x.any().SetTags(ctx, map[string]string{"a": "b"}, nil); return err }},
		{"Set Blob Tier", false, func() error { _, err := x.any().SetTier(ctx, blob.AccessTierCool, nil); return err }},
		{"Snapshot Blob", false, func() error { _, err := x.any().CreateSnapshot(ctx, nil); return err }},
		{"Acquire Lease", false, func() error { _, err := holder.AcquireLease(ctx, 60, nil); return err }},
		{"Renew Lease", false, func() error { _, err := holder.RenewLease(ctx, nil); return err }},
		{"Release Lease", false, func() error { _, err := holder.ReleaseLease(ctx, nil); return err }},
	} {
		before := current()
		if err := step.run(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		after := current()
		if (after != before) != step.changes {
			t.Errorf("%s changes the ETag: %t, want %t", step.name, after != before, step.changes)
		}
		if after != before && seen[after] {
			t.Errorf("%s brought back an ETag", step.name)
		}
		seen[after] = true
	}
}
