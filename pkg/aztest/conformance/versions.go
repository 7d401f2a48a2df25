package conformance

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// Versions tests which operations change the ETag, and that no ETag occurs twice.
func Versions(t T, h Harness) {
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
	holder, err := lease.NewBlobClient(x.any(), &lease.BlobClientOptions{LeaseID: new(someLease)})
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
		{"Set Blob Metadata", true, func() error { _, err := x.any().SetMetadata(ctx, map[string]*string{"a": new("1")}, nil); return err }},
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
