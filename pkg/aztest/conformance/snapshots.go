package conformance

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
)

// Snapshots tests the content of a snapshot, and the operations that it prevents.
func Snapshots(t T, h Harness) {
	c := h.Container(t)
	ctx := context.Background()
	x := target{container: c, name: "base"}
	x.create(t, "")
	first, err := x.any().CreateSnapshot(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.block().Upload(ctx, text("a longer text"), nil); err != nil {
		t.Fatal(err)
	}
	old, err := x.any().WithSnapshot(*first.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	p, err := old.GetProperties(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *p.ContentLength != int64(len("old")) || *p.ETag != *first.ETag {
		t.Errorf("the snapshot is %d bytes of version %s, want 3 of %s", *p.ContentLength, *p.ETag, *first.ETag)
	}
	remove := func(b *blob.Client, o *blob.DeleteOptions) said {
		return call(func(ctx context.Context) error { _, err := b.Delete(ctx, o); return err })
	}
	ask := func(question string, want, got said) {
		t.Helper()
		expect{service: want}.check(t, h, question, got)
	}
	ask("delete a blob that has snapshots", "409 SnapshotsPresent", remove(x.any(), nil))
	ask("delete a snapshot", success, remove(old, nil))
	ask("delete it again", noBlob, remove(old, nil))
	if _, err := x.any().CreateSnapshot(ctx, nil); err != nil {
		t.Fatal(err)
	}
	ask("delete the snapshots only", success, remove(x.any(), &blob.DeleteOptions{DeleteSnapshots: new(blob.DeleteSnapshotsOptionTypeOnly)}))
	ask("delete the blob", success, remove(x.any(), nil))
	x.create(t, "")
	if _, err := x.any().CreateSnapshot(ctx, nil); err != nil {
		t.Fatal(err)
	}
	ask("delete all together", success, remove(x.any(), &blob.DeleteOptions{DeleteSnapshots: new(blob.DeleteSnapshotsOptionTypeInclude)}))

	x.create(t, "")
	ask("acquire a lease", success, x.holder(t, someLease).acquire(60))
	if _, err := x.any().CreateSnapshot(ctx, nil); err != nil {
		t.Fatal(err)
	}
	stage := func(id string) said {
		return call(func(ctx context.Context) error { return stageBlock(ctx, x, id) })
	}
	forgets := "it looks for the lease in the snapshot"
	expect{service: success, emulator: noLease, why: forgets}.check(t, h, "Put Block under the lease, after a snapshot", stage(someLease))
	expect{service: noLeaseID, emulator: success, why: forgets}.check(t, h, "Put Block without the lease, after a snapshot", stage(""))
}
