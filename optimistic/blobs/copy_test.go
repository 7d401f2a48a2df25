package blobs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

var (
	copies = aztest.Op("Copy Blob")
	aborts = aztest.Op("Abort Copy Blob")
)

func TestACopyHasContentAndMetadataOfItsSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := optest.Original(t)
		res, err := Copy(t.Context(), to, from, nil)
		if err != nil || !res.Changed || res.CopyID == "" || res.Status != blob.CopyStatusTypeSuccess || res.Source != "box/n.json" {
			t.Fatalf("Copy = %+v, %v", res, err)
		}
		optest.Requests(t, s, res.Result, 2)
		p := optest.PropertiesOf(t, to)
		if own, lineage := meta.Split(p.Metadata); len(own) != 1 || own["owner"] != "web" || !lineage.Has(res.WriteID) || *p.ETag != res.ETag {
			t.Errorf("metadata %v, lineage %v, ETag %s", own, lineage, *p.ETag)
		}
		if got := optest.Get(t, s.BlockBlob("box", "copy")); got != "x" {
			t.Errorf("content %q", got)
		}
	})
}

func TestACopyIsMadeOnceUnderEveryFault(t *testing.T) {
	for name, fault := range optest.Every(copies) {
		for _, c := range []optimistic.Conditions{{}, {IfNoneMatch: "*"}} {
			t.Run(name+string(c.IfNoneMatch), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, from, to := optest.Original(t)
					s.SetFaults(fault)
					res, err := Copy(t.Context(), to, from, &CopyOptions{Conditions: c, SendOptions: optest.Recreate})
					if err != nil || !res.Changed {
						t.Fatalf("Copy = %+v, %v\n%v", res, err, s.Log())
					}
					s.SetFaults()
					p := optest.PropertiesOf(t, to)
					if *p.CopyID != res.CopyID || *p.ETag != res.ETag && (res.Resolved == 0 || res.ETag != "") {
						if fault.Kind != aztest.AnswerTwice || c != (optimistic.Conditions{}) {
							t.Errorf("the blob is %s by copy %s, reported %s by %s", *p.ETag, *p.CopyID, res.ETag, res.CopyID)
						}
					}
				})
			})
		}
	}
}

func TestALostStartIsResolvedByTheLineage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := optest.Original(t)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: copies, Count: 1})
		res, err := Copy(t.Context(), to, from, &CopyOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}})
		if err != nil || res.Ambiguous != 1 || res.Resolved != 1 || !res.Created || res.CopyID != *optest.PropertiesOf(t, to).CopyID {
			t.Fatalf("Copy = %+v, %v", res, err)
		}
		if res.Requests != 3 {
			t.Errorf("%d requests, want 3: source, copy, look", res.Requests)
		}
	})
}

// TestACopyWithoutRoomForTheLineageIsStartedOnce: after a lost response it was started again.
func TestACopyWithoutRoomForTheLineageIsStartedOnce(t *testing.T) {
	for name, o := range map[string]*CopyOptions{
		"no room":    {Metadata: map[string]string{"k": strings.Repeat("x", 8190)}},
		"no lineage": {SendOptions: optimistic.SendOptions{NoLineage: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, from, to := optest.Original(t)
			s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: copies, Count: 1})
			res, err := Copy(t.Context(), to, from, o)
			if !errors.Is(err, optimistic.ErrOutcomeUnknown) {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			starts := 0
			for _, r := range s.Log() {
				if r.Op == "Copy Blob" {
					starts++
				}
			}
			if starts != 1 {
				t.Errorf("%s: started %d times\n%v", name, starts, s.Log())
			}
		})
	}
}

func TestACopyOverAnotherVersionIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := optest.Original(t)
		there := optest.Put(t, s.BlockBlob("box", "copy"), "mine")
		s.Reset()
		res, err := Copy(t.Context(), to, from, &CopyOptions{Conditions: optimistic.Conditions{IfMatch: `"0x1"`}})
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || conflict.Current != there || conflict.Resource != "box/copy" {
			t.Errorf("err = %v, want a conflict with %s", err, there)
		}
		optest.Requests(t, s, res.Result, 3)
		if _, err := Copy(t.Context(), to, from, &CopyOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}}); !errors.Is(err, optimistic.ErrExists) {
			t.Errorf("err = %v, want exists", err)
		}
		if got := optest.Get(t, s.BlockBlob("box", "copy")); got != "mine" {
			t.Errorf("content %q, want it untouched", got)
		}
	})
}

func TestACopyOfAnotherVersionOfTheSourceIsAConflictAboutTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := optest.Original(t)
		for name, c := range map[string]optimistic.Conditions{"version": {IfMatch: `"0x1"`}, "tags": {IfTags: `"a" = 'b'`}, "unchanged": {IfNoneMatch: *optest.PropertiesOf(t, from).ETag}} {
			s.Reset()
			_, err := Copy(t.Context(), to, from, &CopyOptions{Source: c})
			if conflict, ok := errors.AsType[*optimistic.ConflictError](err); !ok || conflict.Resource != "box/n.json" || conflict.Reason != azerr.SourceChanged {
				t.Errorf("%s: err = %v (%+v), want a conflict about the source", name, err, conflict)
			}
			for _, r := range s.Log() {
				if r.Op == "Copy Blob" && r.Status < 300 {
					t.Errorf("%s: copied all the same: %v", name, s.Log())
				}
			}
		}
		if _, err := Copy(t.Context(), to, s.Container("box").NewBlobClient("none"), nil); !errors.Is(err, optimistic.ErrNotFound) {
			t.Errorf("err = %v, want not found", err)
		}
	})
}

// The source is replaced between the read and the copy: the copy has content and metadata of one version.
func TestACopyIsNeverTorn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 10 * time.Millisecond }})
		client := s.BlockBlob("box", "n.json")
		optest.Put(t, client, "a")
		s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: copies, Count: 1, Delay: time.Second})
		time.AfterFunc(500*time.Millisecond, func() { optest.Put(t, client, "b") })
		res, err := Copy(t.Context(), s.Container("box").NewBlobClient("copy"), client.BlobClient(), nil)
		if err != nil || res.Conflicts != 1 || res.Requests != 4 || res.SourceETag != optest.ETagOf(t, client) || optest.Get(t, s.BlockBlob("box", "copy")) != "b" {
			t.Errorf("Copy = %+v, %v\n%v", res, err, s.Log())
		}
		s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: copies, Count: 1, Delay: time.Second})
		time.AfterFunc(500*time.Millisecond, func() { optest.Put(t, client, "c") })
		_, err = Copy(t.Context(), s.Container("box").NewBlobClient("copy"), client.BlobClient(), &CopyOptions{Source: optimistic.Conditions{IfMatch: optest.ETagOf(t, client)}})
		if conflict, ok := errors.AsType[*optimistic.ConflictError](err); !ok || conflict.Resource != "box/n.json" {
			t.Errorf("err = %v, want a conflict about the source: it is pinned", err)
		}
	})
}

func TestAPendingCopyCanBeWaitedForAndAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := optest.Original(t)
		s.HoldCopies(true)
		res, err := Copy(t.Context(), to, from, nil)
		if err != nil || res.Status != blob.CopyStatusTypePending {
			t.Fatalf("Copy = %+v, %v", res, err)
		}
		s.Reset()
		aborted, err := AbortCopy(t.Context(), to, res.CopyID, nil)
		if err != nil || !aborted.Changed {
			t.Fatalf("AbortCopy = %+v, %v", aborted, err)
		}
		optest.Requests(t, s, aborted, 1)
		s.Reset()
		aborted, err = AbortCopy(t.Context(), to, res.CopyID, nil)
		if err != nil || !aborted.AlreadyApplied || aborted.Changed {
			t.Errorf("again: %+v, %v, want already applied", aborted, err)
		}
		optest.Requests(t, s, aborted, 2)

		to = s.Container("box").NewBlobClient("second")
		time.AfterFunc(3*time.Second, func() {
			if _, err := to.AbortCopyFromURL(context.Background(), *optest.PropertiesOf(t, to).CopyID, nil); err != nil {
				t.Error(err)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if res, err = Copy(ctx, to, from, &CopyOptions{Wait: true}); err == nil || errors.Is(err, optimistic.ErrConflict) || res.Status != blob.CopyStatusTypeAborted {
			t.Errorf("Copy = %+v, %v, want failed", res, err)
		}
	})
}

func TestAWaitEndsWithItsContextOrWithTheDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := optest.Original(t)
		s.HoldCopies(true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if res, err := Copy(ctx, to, from, &CopyOptions{Wait: true}); !errors.Is(err, context.DeadlineExceeded) || res.CopyID == "" {
			t.Errorf("Copy = %+v, %v, want the deadline, and the id to abort it by", res, err)
		}
		time.AfterFunc(5500*time.Millisecond, func() {
			// A pending destination can only be aborted; the change after that happens between two looks of the waiting
			// call.
			second := s.Container("box").NewBlobClient("second")
			_, err := second.AbortCopyFromURL(context.Background(), *optest.PropertiesOf(t, second).CopyID, nil)
			if err == nil {
				_, err = second.Delete(context.Background(), nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute) // a wait that misses it must not go on for ever
		defer cancel()
		if _, err := Copy(ctx, s.Container("box").NewBlobClient("second"), from, &CopyOptions{Wait: true}); !errors.Is(err, optimistic.ErrConflict) {
			t.Errorf("err = %v, want a conflict: it is gone", err)
		}
	})
}

func TestAnAbortIsHarmlessUnderEveryFault(t *testing.T) {
	for name, fault := range optest.Every(aborts) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, from, to := optest.Original(t)
				s.HoldCopies(true)
				res, err := Copy(t.Context(), to, from, nil)
				if err != nil {
					t.Fatal(err)
				}
				s.SetFaults(fault)
				if r, err := AbortCopy(t.Context(), to, res.CopyID, nil); err != nil || !r.Changed && !r.AlreadyApplied {
					t.Fatalf("AbortCopy = %+v, %v\n%v", r, err, s.Log())
				}
				if status := *optest.PropertiesOf(t, to).CopyStatus; status != blob.CopyStatusTypeAborted {
					t.Errorf("the copy is %s", status)
				}
			})
		})
	}
}

func TestAFinishedCopyCannotBeAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, from, to := optest.Original(t)
		res, err := Copy(t.Context(), to, from, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, id := range map[string]string{"finished": res.CopyID, "another": "00000000-0000-4000-8000-000000000000"} {
			if _, err := AbortCopy(t.Context(), to, id, nil); !errors.Is(err, ErrNoCopy) {
				t.Errorf("%s: err = %v, want none pending", name, err)
			}
		}
		if optest.Get(t, s.BlockBlob("box", "copy")) != "x" {
			t.Error("the copy is not whole")
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aborts, Count: 1})
		if _, err := AbortCopy(t.Context(), to, res.CopyID, nil); !errors.Is(err, ErrNoCopy) || errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("err = %v, want none pending: it finished, so the lost request did nothing", err)
		}
		if _, err := AbortCopy(t.Context(), s.Container("box").NewBlobClient("none"), res.CopyID, nil); !errors.Is(err, optimistic.ErrNotFound) {
			t.Errorf("err = %v, want not found", err)
		}
	})
}
