package aztest_test

import (
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/aztest"
)

// TestSnapshotsOfOneInstantAreTwo: an emulator names them by the millisecond, and keeps one of them.
func TestSnapshotsOfOneInstantAreTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := aztest.New(nil).BlockBlob("box", "blob")
		if _, err := client.Upload(t.Context(), content("x"), nil); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for range 3 {
			resp, err := client.CreateSnapshot(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			names[*resp.Snapshot] = true
		}
		if len(names) != 3 {
			t.Errorf("three snapshots have %d names", len(names))
		}
	})
}

func TestASnapshotIsAVersionOfItsOwnIfItsMetadataIs(t *testing.T) {
	client := aztest.New(nil).BlockBlob("box", "blob")
	base, err := client.Upload(t.Context(), content("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	value := "v"
	for _, metadata := range []map[string]*string{nil, {"name": &value}} {
		resp, err := client.CreateSnapshot(t.Context(), &blob.CreateSnapshotOptions{Metadata: metadata})
		if err != nil {
			t.Fatal(err)
		}
		if same := *resp.ETag == *base.ETag; same != (metadata == nil) {
			t.Errorf("with metadata %v it is the base's version: %t", metadata, same)
		}
	}
	p, err := client.GetProperties(t.Context(), nil)
	if err != nil || *p.ETag != *base.ETag {
		t.Errorf("the base has changed: %v", err)
	}
}

func TestASnapshotIsReadOnly(t *testing.T) {
	client := aztest.New(nil).BlockBlob("box", "blob")
	if _, err := client.Upload(t.Context(), content("x"), nil); err != nil {
		t.Fatal(err)
	}
	resp, err := client.CreateSnapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := client.WithSnapshot(*resp.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	holder, err := lease.NewBlobClient(snapshot, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = holder.AcquireLease(t.Context(), 15, nil)
	expectCode(t, "lease", code(err), "InvalidQueryParameterValue")
	_, err = snapshot.SetMetadata(t.Context(), nil, nil)
	expectCode(t, "set metadata", code(err), "InvalidQueryParameterValue")
	other := azcore.ETag(`"0x8D0000000000001"`)
	_, err = snapshot.Delete(t.Context(), &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &other}}})
	expectCode(t, "delete another version", code(err), "ConditionNotMet")
	expectCode(t, "the base can be leased", leased{t, client}.acquire(mine, 15), "")
	_, err = snapshot.Delete(t.Context(), nil)
	expectCode(t, "delete, whoever leases the base", code(err), "")
}

func TestAnArchivedBlobIsOutOfReach(t *testing.T) {
	client := aztest.New(nil).BlockBlob("box", "blob")
	if _, err := client.Upload(t.Context(), content("x"), nil); err != nil {
		t.Fatal(err)
	}
	tier := func(to blob.AccessTier) string {
		_, err := client.SetTier(t.Context(), to, nil)
		return code(err)
	}
	expectCode(t, "a tier that is none", tier("Lukewarm"), "InvalidHeaderValue")
	expectCode(t, "archive", tier(blob.AccessTierArchive), "")
	_, err := client.DownloadStream(t.Context(), nil)
	expectCode(t, "read", code(err), "BlobArchived")
	_, err = client.SetMetadata(t.Context(), nil, nil)
	expectCode(t, "set metadata", code(err), "BlobArchived")
	_, err = client.SetTags(t.Context(), map[string]string{"a": "b"}, nil)
	expectCode(t, "set tags", code(err), "")
	expectCode(t, "bring it back", tier(blob.AccessTierHot), "")
	if got := stored(t, client); got != "x" {
		t.Errorf("the service holds %q", got)
	}
}
