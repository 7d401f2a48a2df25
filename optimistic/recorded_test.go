package optimistic

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

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// The tests in this file hold the package against answers that real accounts gave and that emulators do not give. See
// pkg/aztest/internal/replay.

// TestAConditionOnTheTargetOfACopyIsAConflict: Copy Blob has a code of its own for the destination.
func TestAConditionOnTheTargetOfACopyIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := original(t)
		there := put(t, s.BlockBlob("box", "copy"), "mine")
		_, err := Copy(t.Context(), to, from, &CopyOptions{Conditions: Conditions{IfMatch: `"0x1"`}})
		conflict, ok := errors.AsType[*ConflictError](err)
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
				s, client := row(t, `{"n":41}`)
				target := TableEntity[counter](client, "p", "r")
				s.SetFaults(aztest.Fault{Kind: aztest.Answer, Match: aztest.Op("Merge Entity"), Status: http.StatusPreconditionFailed, Code: code, Count: 1})
				res, err := Update(t.Context(), target, increment, nil)
				if err != nil || res.Conflicts != 1 || number(t, client, "r") != 42 {
					t.Errorf("Update = %+v, %v, n = %d; want one conflict and n = 42", res, err, number(t, client, "r"))
				}
				s.SetFaults(aztest.Fault{Kind: aztest.Answer, Match: aztest.Op("Delete Entity"), Status: http.StatusPreconditionFailed, Code: code, Count: 1})
				version, err := Read(t.Context(), target, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = Delete(t.Context(), target, version.State, nil)
				if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Reason != azerr.Changed {
					t.Errorf("Delete = %v, want a conflict", err)
				}
			})
		})
	}
}

// TestAReadOfAMissingVersionIsAConflict: to a read with If-Match of a missing blob the service answers 404, emulators 412.
func TestAReadOfAMissingVersionIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := quiet(t, "")
		version := Conditions{IfMatch: `"0x1"`}
		_, downloaded := Download(t.Context(), client.BlobClient(), &bytes.Buffer{}, &DownloadOptions{Conditions: version})
		_, snapshot := Snapshot(t.Context(), s.Container("box"), "n.json", &SnapshotOptions{Conditions: version})
		for op, err := range map[string]error{"Download": downloaded, "Snapshot": snapshot} {
			conflict, ok := errors.AsType[*ConflictError](err)
			if !ok || !azerr.Has(err, "BlobNotFound") || conflict.Reason != azerr.Gone || conflict.Base != version.IfMatch {
				t.Errorf("%s: err = %v, want a conflict because the version is gone", op, err)
			}
		}
		_, downloaded = Download(t.Context(), client.BlobClient(), &bytes.Buffer{}, nil)
		_, snapshot = Snapshot(t.Context(), s.Container("box"), "n.json", nil)
		for op, err := range map[string]error{"Download": downloaded, "Snapshot": snapshot} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%s without a condition: err = %v, want not found", op, err)
			}
		}
	})
}

// TestADownloadWhoseBlobIsDeletedIsTorn: the ranges after the first are read with If-Match.
func TestADownloadWhoseBlobIsDeletedIsTorn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := quiet(t, "0123456789")
		deleting := &afterFirst{do: func() {
			if _, err := client.Delete(t.Context(), nil); err != nil {
				t.Error(err)
			}
		}}
		_, err := Download(t.Context(), client.BlobClient(), deleting, &DownloadOptions{BlockSize: 4, Concurrency: 1})
		conflict, ok := errors.AsType[*ConflictError](err)
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
		_, client := quiet(t, "old")
		id := base64.StdEncoding.EncodeToString([]byte("1"))
		if _, err := StageBlock(t.Context(), client, id, []byte("new"), nil); err != nil {
			t.Fatal(err)
		}
		_, err := CommitBlocks(t.Context(), client, []string{id}, &UploadOptions{Conditions: Conditions{IfModifiedSince: time.Now().Add(15 * time.Minute)}})
		if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Reason != azerr.Changed || get(t, client) != "old" {
			t.Errorf("err = %v, content %q; want a conflict and the old content", err, get(t, client))
		}
	})
}

// TestALeaseIDThatIsNoGUIDIsBadInput: the service refuses it on every operation, before it looks at the lease.
func TestALeaseIDThatIsNoGUIDIsBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := quiet(t, "x")
		_, err := Snapshot(t.Context(), s.Container("box"), "n.json", &SnapshotOptions{Conditions: Conditions{LeaseID: "mine"}})
		if azerr.Classify(err).Kind != azerr.BadInput || !azerr.Has(err, "InvalidHeaderValue") {
			t.Errorf("err = %v, want bad input", err)
		}
	})
}

// TestEntitiesOfOneTransactionMayShareAnETag: their Timestamps are those of the transaction. An ETag says which version of
// an entity it is, not which entity.
func TestEntitiesOfOneTransactionMayShareAnETag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := row(t, "")
		first, second := TableEntity[counter](client, "p", "1"), TableEntity[counter](client, "p", "2")
		if _, err := Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error {
			return errors.Join(tx.Insert("1", counter{N: 1}), tx.Insert("2", counter{N: 1}))
		}, nil); err != nil {
			t.Fatal(err)
		}
		etag := func(target Entity[counter]) azcore.ETag {
			v, err := Read(t.Context(), target, nil)
			if err != nil {
				t.Fatal(err)
			}
			return v.ETag
		}
		if etag(first) != etag(second) {
			t.Fatalf("ETags %s and %s: the premise is gone", etag(first), etag(second))
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		if res, err := Update(t.Context(), first, increment, nil); err != nil || res.Resolved != 1 {
			t.Errorf("Update = %+v, %v", res, err)
		}
		if _, err := Update(t.Context(), second, increment, nil); err != nil {
			t.Error(err)
		}
		if number(t, client, "1") != 2 || number(t, client, "2") != 2 {
			t.Errorf("n = %d and %d, want 2 and 2", number(t, client, "1"), number(t, client, "2"))
		}
	})
}
