package blobs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// snapshotsOf lists the snapshots of box/n.json with the metadata that a reader of azconc's sees.
func snapshotsOf(t *testing.T, s *aztest.Service) (ids []string, metadata []map[string]string) {
	t.Helper()
	pager := s.Container("box").NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Snapshots: true, Metadata: true}})
	for pager.More() {
		page, err := pager.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Segment.BlobItems {
			if item.Snapshot != nil && *item.Name == "n.json" {
				own, _ := meta.Split(item.Metadata)
				ids, metadata = append(ids, *item.Snapshot), append(metadata, own)
			}
		}
	}
	return ids, metadata
}

var snapshots = aztest.Op("Snapshot Blob")

func TestASnapshotHasTheMetadataOfItsBlob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "x")
		if _, err := client.SetMetadata(t.Context(), map[string]*string{"Owner": new("web")}, nil); err != nil {
			t.Fatal(err)
		}
		before := optest.ETagOf(t, client)
		s.Reset()
		res, err := Snapshot(t.Context(), s.Container("box"), "n.json", nil)
		if err != nil || res.Snapshot == "" || res.ETag != before || !res.Changed || len(res.Twins) > 0 {
			t.Fatalf("Snapshot = %+v, %v", res, err)
		}
		optest.Requests(t, s, res.Result, 2)
		ids, metadata := snapshotsOf(t, s)
		if len(ids) != 1 || ids[0] != res.Snapshot || len(metadata[0]) != 1 || metadata[0]["owner"] != "web" {
			t.Errorf("snapshots %v with %v, want %s with its blob's metadata", ids, metadata, res.Snapshot)
		}
		if optest.ETagOf(t, client) != before {
			t.Error("the blob has another version")
		}
		if _, err := Snapshot(t.Context(), s.Container("box"), "n.json", &SnapshotOptions{Metadata: map[string]string{"why": "test"}}); err != nil {
			t.Fatal(err)
		}
		if _, metadata := snapshotsOf(t, s); len(metadata) != 2 || len(metadata[1]) != 1 || metadata[1]["why"] != "test" {
			t.Errorf("metadata %v, want what was given", metadata)
		}
	})
}

func TestOneSnapshotUnderEveryFault(t *testing.T) {
	for name, fault := range optest.Every(snapshots) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := optest.Quiet(t, "x")
				s.SetFaults(fault)
				res, err := Snapshot(t.Context(), s.Container("box"), "n.json", nil)
				if err != nil {
					t.Fatalf("Snapshot: %v\n%v", err, s.Log())
				}
				s.SetFaults()
				s.Flush()
				ids, _ := snapshotsOf(t, s)
				want := 1
				if fault.Kind == aztest.AnswerTwice || fault.Kind == aztest.DelayCommit || fault.Kind == aztest.CommitAfterBreak && fault.Delay > 0 {
					want = 2 // the limits that the documentation states: the second is there after the end of the call
				}
				if len(ids) != want {
					t.Errorf("%d snapshots, want %d\n%v", len(ids), want, s.Log())
				}
				found := false
				for _, id := range ids {
					found = found || id == res.Snapshot
				}
				if !found {
					t.Errorf("%s is not among %v", res.Snapshot, ids)
				}
			})
		})
	}
}

func TestASnapshotWhoseResponseWasLostIsFoundInTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := optest.Quiet(t, "x")
		optest.Put(t, s.BlockBlob("box", "n.json.other"), "y")
		s.Reset()
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: snapshots, Count: 1})
		res, err := Snapshot(t.Context(), s.Container("box"), "n.json", nil)
		ids, _ := snapshotsOf(t, s)
		if err != nil || len(ids) != 1 || res.Snapshot != ids[0] || res.Ambiguous != 1 || res.Resolved != 1 {
			t.Fatalf("Snapshot = %+v, %v; there are %v", res, err, ids)
		}
		if res.Requests != 4 {
			t.Errorf("%d requests, want 4: read, snapshot, list, list", res.Requests)
		}
	})
}

// A request that is carried out between the list and the repetition leaves a second snapshot. The result reports it.
func TestATwinIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 10 * time.Millisecond }})
		optest.Put(t, s.BlockBlob("box", "n.json"), "x")
		s.SetFaults(
			aztest.Fault{Kind: aztest.DelayCommit, Match: snapshots, Count: 1, Delay: time.Second},
			aztest.Fault{Kind: aztest.Slow, Match: snapshots, Count: 1, Delay: 5 * time.Second},
		)
		res, err := Snapshot(t.Context(), s.Container("box"), "n.json", nil)
		ids, _ := snapshotsOf(t, s)
		if err != nil || len(ids) != 2 || len(res.Twins) != 1 || res.Twins[0] == res.Snapshot {
			t.Errorf("Snapshot = %+v, %v; there are %v, want a twin\n%v", res, err, ids, s.Log())
		}
	})
}

func TestASnapshotShowsTheRequestedVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "x")
		old := optest.ETagOf(t, client)
		now := optest.Put(t, client, "y")
		s.Reset()
		res, err := Snapshot(t.Context(), s.Container("box"), "n.json", &SnapshotOptions{Conditions: optimistic.Conditions{IfMatch: old}})
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || conflict.Base != old || conflict.Current != now {
			t.Fatalf("err = %v, want a conflict between %s and %s", err, old, now)
		}
		optest.Requests(t, s, res.Result, 2)
		if ids, _ := snapshotsOf(t, s); len(ids) != 0 {
			t.Errorf("%v were taken", ids)
		}
		for name, c := range map[string]optimistic.Conditions{"unchanged": {IfNoneMatch: now}, "tags": {IfTags: `"a" = 'b'`}, "time": {IfModifiedSince: time.Now().Add(time.Hour)}} {
			if _, err := Snapshot(t.Context(), s.Container("box"), "n.json", &SnapshotOptions{Conditions: c}); !errors.Is(err, optimistic.ErrConflict) {
				t.Errorf("%s: err = %v, want a conflict", name, err)
			}
		}
		if _, err := Snapshot(t.Context(), s.Container("box"), "none", nil); !errors.Is(err, optimistic.ErrNotFound) {
			t.Errorf("err = %v, want not found", err)
		}
	})
}

// The blob is replaced each time between the read and the snapshot, twice: the third one shows the third version.
func TestASnapshotFollowsAChangingBlob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 10 * time.Millisecond }})
		client := s.BlockBlob("box", "n.json")
		optest.Put(t, client, "a")
		s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: snapshots, Count: 1, Delay: time.Second})
		time.AfterFunc(500*time.Millisecond, func() { optest.Put(t, client, "b") })
		res, err := Snapshot(t.Context(), s.Container("box"), "n.json", nil)
		if err != nil || res.Conflicts != 1 || res.Requests != 4 || res.ETag != optest.ETagOf(t, client) {
			t.Fatalf("Snapshot = %+v, %v\n%v", res, err, s.Log())
		}
	})
}

func TestALostSnapshotIsUnknownWithoutAList(t *testing.T) {
	for name, opts := range map[string]*SnapshotOptions{"no right to list": nil, "no lineage": {SendOptions: optimistic.SendOptions{NoLineage: true}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := optest.Quiet(t, "x")
				faults := []aztest.Fault{{Kind: aztest.LoseAnswer, Match: snapshots, Count: 1}}
				if opts == nil {
					faults = append(faults, aztest.Fault{Kind: aztest.Answer, Match: aztest.Op("List Blobs"), Status: 403, Code: "AuthorizationPermissionMismatch"})
				}
				s.SetFaults(faults...)
				if _, err := Snapshot(t.Context(), s.Container("box"), "n.json", opts); !errors.Is(err, optimistic.ErrOutcomeUnknown) {
					t.Errorf("err = %v, want unknown", err)
				}
				s.SetFaults()
				if ids, _ := snapshotsOf(t, s); len(ids) != 1 {
					t.Errorf("%d snapshots, want the one: it must not be sent again", len(ids))
				}
			})
		})
	}
}

func TestSnapshotOptionsAreCheckedBeforeAnythingIsSent(t *testing.T) {
	s, _ := optest.Quiet(t, "x")
	for name, opts := range map[string]*SnapshotOptions{
		"any":      {Conditions: optimistic.Conditions{IfNoneMatch: "*"}},
		"etag":     {Conditions: optimistic.Conditions{IfMatch: "bare"}},
		"metadata": {Metadata: map[string]string{"1x": "y"}},
		"own":      {Metadata: map[string]string{optimistic.LineageKey: "y"}},
	} {
		if _, err := Snapshot(t.Context(), s.Container("box"), "n.json", opts); err == nil || s.Requests() != 0 {
			t.Errorf("%s: err = %v after %d requests", name, err, s.Requests())
		}
	}
}
