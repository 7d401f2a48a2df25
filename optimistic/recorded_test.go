package optimistic_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// The tests in this file check the package against responses that real accounts gave and emulators do not give. See
// pkg/aztest/internal/replay.

// TestAConditionOnTheTargetOfACopyIsAConflict: Copy Blob has a code of its own for the destination.
func TestAConditionOnTheTargetOfACopyIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := optest.Original(t)
		there := optest.Put(t, s.BlockBlob("box", "copy"), "mine")
		_, err := blobs.Copy(t.Context(), to, from, &blobs.CopyOptions{Conditions: optimistic.Conditions{IfMatch: `"0x1"`}})
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || !azerr.Has(err, "TargetConditionNotMet") || conflict.Reason != azerr.Changed || conflict.Current != there {
			t.Errorf("err = %v, want a conflict with %s because of TargetConditionNotMet", err, there)
		}
	})
}

// TestBothCodesOfAStaleEntityAreConflicts: accounts have answered a stale ETag with either code.
func TestBothCodesOfAStaleEntityAreConflicts(t *testing.T) {
	for _, code := range []string{"UpdateConditionNotSatisfied", "ConditionNotMet"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Row(t, `{"n":41}`)
				target := tables.NewEntity[optest.Counter](client, "p", "r")
				s.SetFaults(aztest.Fault{Kind: aztest.Answer, Match: aztest.Op("Merge Entity"), Status: http.StatusPreconditionFailed, Code: code, Count: 1})
				res, err := optimistic.Update(t.Context(), target, optest.Increment, nil)
				if err != nil || res.Conflicts != 1 || optest.Number(t, client, "r") != 42 {
					t.Errorf("Update = %+v, %v, n = %d; want one conflict and n = 42", res, err, optest.Number(t, client, "r"))
				}
				s.SetFaults(aztest.Fault{Kind: aztest.Answer, Match: aztest.Op("Delete Entity"), Status: http.StatusPreconditionFailed, Code: code, Count: 1})
				version, err := optimistic.Read(t.Context(), target, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = optimistic.Delete(t.Context(), target, version.State, nil)
				if conflict, ok := errors.AsType[*optimistic.ConflictError](err); !ok || conflict.Reason != azerr.Changed {
					t.Errorf("Delete = %v, want a conflict", err)
				}
			})
		})
	}
}

// TestAReadOfAMissingVersionIsAConflict: to a read with If-Match of a missing blob the service answers 404, emulators 412.
func TestAReadOfAMissingVersionIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "")
		version := optimistic.Conditions{IfMatch: `"0x1"`}
		_, downloaded := blobs.Download(t.Context(), client.BlobClient(), &bytes.Buffer{}, &blobs.DownloadOptions{Conditions: version})
		_, snapshot := blobs.Snapshot(t.Context(), s.Container("box"), "n.json", &blobs.SnapshotOptions{Conditions: version})
		for op, err := range map[string]error{"Download": downloaded, "Snapshot": snapshot} {
			conflict, ok := errors.AsType[*optimistic.ConflictError](err)
			if !ok || !azerr.Has(err, "BlobNotFound") || conflict.Reason != azerr.Gone || conflict.Base != version.IfMatch {
				t.Errorf("%s: err = %v, want a conflict because the version is gone", op, err)
			}
		}
		_, downloaded = blobs.Download(t.Context(), client.BlobClient(), &bytes.Buffer{}, nil)
		_, snapshot = blobs.Snapshot(t.Context(), s.Container("box"), "n.json", nil)
		for op, err := range map[string]error{"Download": downloaded, "Snapshot": snapshot} {
			if !errors.Is(err, optimistic.ErrNotFound) {
				t.Errorf("%s without a condition: err = %v, want not found", op, err)
			}
		}
	})
}

// TestADownloadWhoseBlobIsDeletedIsTorn: the ranges after the first are read with If-Match.
func TestADownloadWhoseBlobIsDeletedIsTorn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := optest.Quiet(t, "0123456789")
		deleting := &afterFirst{do: func() {
			if _, err := client.Delete(t.Context(), nil); err != nil {
				t.Error(err)
			}
		}}
		_, err := blobs.Download(t.Context(), client.BlobClient(), deleting, &blobs.DownloadOptions{BlockSize: 4, Concurrency: 1})
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || conflict.Reason != azerr.Gone || !azerr.Has(err, "BlobNotFound") {
			t.Errorf("err = %v, want a conflict because the blob is gone", err)
		}
	})
}

// afterFirst is a writer that does something after the first write.
type afterFirst struct {
	bytes.Buffer
	do func()
}

func (w *afterFirst) Write(p []byte) (int, error) {
	if do := w.do; do != nil {
		w.do = nil
		do()
	}
	return w.Buffer.Write(p)
}

// TestBlocksAreNotCommittedUnderADateInTheFuture: a blob has not changed since a time that is still to come.
func TestBlocksAreNotCommittedUnderADateInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := optest.Quiet(t, "old")
		id := base64.StdEncoding.EncodeToString([]byte("1"))
		if _, err := blobs.StageBlock(t.Context(), client, id, []byte("new"), nil); err != nil {
			t.Fatal(err)
		}
		_, err := blobs.CommitBlocks(t.Context(), client, []string{id}, &blobs.UploadOptions{Conditions: optimistic.Conditions{IfModifiedSince: time.Now().Add(15 * time.Minute)}})
		if conflict, ok := errors.AsType[*optimistic.ConflictError](err); !ok || conflict.Reason != azerr.Changed || optest.Get(t, client) != "old" {
			t.Errorf("err = %v, content %q; want a conflict and the old content", err, optest.Get(t, client))
		}
	})
}

// TestALeaseIDThatIsNoGUIDIsBadInput: the service refuses it on every operation, before it looks at the lease.
func TestALeaseIDThatIsNoGUIDIsBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := optest.Quiet(t, "x")
		_, err := blobs.Snapshot(t.Context(), s.Container("box"), "n.json", &blobs.SnapshotOptions{Conditions: optimistic.Conditions{LeaseID: "mine"}})
		if azerr.Classify(err).Kind != azerr.BadInput || !azerr.Has(err, "InvalidHeaderValue") {
			t.Errorf("err = %v, want bad input", err)
		}
	})
}

// TestEntitiesOfOneTransactionMayShareAnETag: their Timestamps are those of the transaction. An ETag says which version of
// an entity it is, not which entity.
func TestEntitiesOfOneTransactionMayShareAnETag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Row(t, "")
		first, second := tables.NewEntity[optest.Counter](client, "p", "1"), tables.NewEntity[optest.Counter](client, "p", "2")
		if _, err := tables.Transact(t.Context(), client, "p", func(_ context.Context, tx *tables.Tx) error {
			return errors.Join(tx.Insert("1", optest.Counter{N: 1}), tx.Insert("2", optest.Counter{N: 1}))
		}, nil); err != nil {
			t.Fatal(err)
		}
		etag := func(target tables.Entity[optest.Counter]) azcore.ETag {
			v, err := optimistic.Read(t.Context(), target, nil)
			if err != nil {
				t.Fatal(err)
			}
			return v.ETag
		}
		if etag(first) != etag(second) {
			t.Fatalf("ETags %s and %s: the premise is gone", etag(first), etag(second))
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		if res, err := optimistic.Update(t.Context(), first, optest.Increment, nil); err != nil || res.Resolved != 1 {
			t.Errorf("Update = %+v, %v", res, err)
		}
		if _, err := optimistic.Update(t.Context(), second, optest.Increment, nil); err != nil {
			t.Error(err)
		}
		if optest.Number(t, client, "1") != 2 || optest.Number(t, client, "2") != 2 {
			t.Errorf("n = %d and %d, want 2 and 2", optest.Number(t, client, "1"), optest.Number(t, client, "2"))
		}
	})
}
