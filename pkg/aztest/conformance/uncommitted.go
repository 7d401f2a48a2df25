package conformance

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

func stageBlock(ctx context.Context, x target, leaseID string) error {
	o := &blockblob.StageBlockOptions{}
	if leaseID != "" {
		o.LeaseAccessConditions = &blob.LeaseAccessConditions{LeaseID: &leaseID}
	}
	_, err := x.block().StageBlock(ctx, blockID, text("staged"), o)
	return err
}

// Uncommitted tests a name that has staged blocks but no blob yet.
func Uncommitted(t T, h Harness) {
	c := h.Container(t)
	stage := func(name string) target {
		x := target{container: c, name: name}
		expect{service: success}.check(t, h, "Put Block", call(func(ctx context.Context) error { return stageBlock(ctx, x, "") }))
		return x
	}
	isNew := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)}}
	commit := func(x target, a *blob.AccessConditions) said {
		return call(func(ctx context.Context) error {
			_, err := x.block().CommitBlockList(ctx, []string{blockID}, &blockblob.CommitBlockListOptions{AccessConditions: a})
			return err
		})
	}
	x := stage("put")
	expect{service: noBlob}.check(t, h, "Get Blob Properties", call(func(ctx context.Context) error { _, err := x.any().GetProperties(ctx, nil); return err }))
	expect{service: success}.check(t, h, "Get Block List", call(func(ctx context.Context) error {
		_, err := x.block().GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
		return err
	}))
	page, err := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{}).NextPage(context.Background())
	if err != nil || len(page.Segment.BlobItems) != 0 {
		t.Errorf("List Blobs: %v, %d blobs, want none", err, len(page.Segment.BlobItems))
	}
	put := call(func(ctx context.Context) error {
		_, err := x.block().Upload(ctx, text("new"), &blockblob.UploadOptions{AccessConditions: isNew})
		return err
	})
	expect{service: success, emulator: exists, why: "it takes staged blocks for a blob"}.check(t, h, "Put Blob, If-None-Match: *", put)

	x = stage("commit")
	expect{service: success}.check(t, h, "Put Block List, If-None-Match: *", commit(x, isNew))
	expect{service: exists}.check(t, h, "Put Block List again, If-None-Match: *", commit(x, isNew))

	x = stage("discarded")
	if _, err := x.block().Upload(context.Background(), text("new"), nil); err != nil {
		t.Fatal(err)
	}
	expect{service: "400 InvalidBlockList", emulator: success, why: "a Put Blob leaves the staged blocks"}.
		check(t, h, "Put Block List of blocks that a Put Blob has discarded", commit(x, nil))

	x = stage("leased")
	expect{service: success}.check(t, h, "acquire a lease", x.holder(t, someLease).acquire(60))
	expect{service: noLeaseID}.check(t, h, "Put Block List without the lease", commit(x, nil))
	held := &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: new(someLease)}}
	expect{service: success}.check(t, h, "Put Block List under the lease", commit(x, held))
	expect{service: noLeaseID}.check(t, h, "a write without the lease", x.write(""))
}
