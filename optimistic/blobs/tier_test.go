package blobs

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestATierIsSetUnderEveryFault, and nothing else about the blob: its version stays.
func TestATierIsSetUnderEveryFault(t *testing.T) {
	for name, fault := range optest.Every(aztest.Writes) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, "x")
				before := optest.ETagOf(t, client)
				s.Reset()
				s.SetFaults(fault)
				res, err := SetTier(t.Context(), client.BlobClient(), blob.AccessTierCool, nil)
				if s.SetFaults(); err != nil || !res.Changed || res.Pending || res.ETag != "" || res.Requests != s.Requests() {
					t.Errorf("%+v, %v, sent %d\n%v", res, err, s.Requests(), s.Log())
				}
				s.Flush()
				if p := optest.PropertiesOf(t, client.BlobClient()); *p.AccessTier != "Cool" || *p.ETag != before {
					t.Errorf("the tier is %s at %s, want Cool at %s", *p.AccessTier, *p.ETag, before)
				}
			})
		})
	}
}

// TestALostTierIsFoundBeforeItIsSetAgain: a repetition could overwrite the tier that another client has set since.
func TestALostTierIsFoundBeforeItIsSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "x")
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		res, err := SetTier(t.Context(), client.BlobClient(), blob.AccessTierCold, nil)
		if err != nil || res.Ambiguous != 1 || res.Resolved != 1 {
			t.Errorf("%+v, %v", res, err)
		}
		optest.Requests(t, s, res.Result, 2) // the request and the look
	})
}

// TestATierUnderAConditionOnTags is set while the tags hold. After a lost response a refusal proves nothing, and neither
// does the tier, which another client may have set.
func TestATierUnderAConditionOnTags(t *testing.T) {
	on := &TierOptions{Conditions: optimistic.Conditions{IfTags: `"state" = 'done'`}}
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		client := s.BlockBlob("box", "n")
		optest.PutTagged(t, client, map[string]string{"state": "ready"})
		s.Reset()
		res, err := SetTier(t.Context(), client.BlobClient(), blob.AccessTierCool, on)
		if conflict, ok := errors.AsType[*optimistic.ConflictError](err); !ok || conflict.Op != "set tier" {
			t.Errorf("%+v, %v; want a conflict", res, err)
		}
		if _, err := client.SetTags(t.Context(), map[string]string{"state": "done"}, nil); err != nil {
			t.Fatal(err)
		}
		s.Reset()
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		res, err = SetTier(t.Context(), client.BlobClient(), blob.AccessTierCool, on)
		if err != nil || res.Ambiguous != 1 {
			t.Errorf("%+v, %v", res, err)
		}
		optest.Requests(t, s, res.Result, 3) // the request, the look, and the request again
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Set Blob Tier")})
		if _, err = SetTier(t.Context(), client.BlobClient(), blob.AccessTierCool, on); !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("without a response: %v", err)
		}
	})
}

func TestABlobReturnsFromTheArchiveLater(t *testing.T) {
	s, client := optest.Quiet(t, "x")
	if res, err := SetTier(t.Context(), client.BlobClient(), blob.AccessTierArchive, nil); err != nil || res.Pending {
		t.Errorf("archive: %+v, %v", res, err)
	}
	s.Reset()
	res, err := SetTier(t.Context(), client.BlobClient(), blob.AccessTierHot, &TierOptions{Priority: blob.RehydratePriorityHigh})
	if err != nil || !res.Pending {
		t.Errorf("bring it back: %+v, %v", res, err)
	}
	optest.Requests(t, s, res.Result, 1)
}

func TestATierIsRefused(t *testing.T) {
	s, client := optest.Quiet(t, "x")
	for name, opts := range map[string]*TierOptions{
		"a condition on the version": {Conditions: optimistic.Conditions{IfMatch: `"1"`}},
		"a bad option":               {SendOptions: optimistic.SendOptions{Grace: -1}},
	} {
		if _, err := SetTier(t.Context(), client.BlobClient(), blob.AccessTierCool, opts); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := SetTier(t.Context(), client.BlobClient(), "Tepid", nil); err == nil || s.Requests() != 0 {
		t.Errorf("a tier that does not exist: %v after %d requests", err, s.Requests())
	}
	if _, err := SetTier(t.Context(), s.BlockBlob("box", "none").BlobClient(), blob.AccessTierCool, nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("no blob: %v", err)
	}
	snapshot, err := client.CreateSnapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	old, err := client.WithSnapshot(*snapshot.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := SetTier(t.Context(), old.BlobClient(), blob.AccessTierArchive, nil); err != nil {
		t.Errorf("archive the snapshot: %v", err)
	}
	if res, err := SetTier(t.Context(), old.BlobClient(), blob.AccessTierHot, nil); err == nil || errors.Is(err, optimistic.ErrOutcomeUnknown) || res.Changed {
		t.Errorf("bring the snapshot back: %+v, %v; want the refusal of the service", res, err)
	}
}
