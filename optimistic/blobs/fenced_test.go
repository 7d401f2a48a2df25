package blobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/fence"
)

func TestAnEarlierHolderCannotWriteABlob(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	early, late := &optest.Holder{Token: 7}, &optest.Holder{Token: 8}
	for _, h := range []*optest.Holder{early, late, late} { // equal fences are the same holder
		res, err := optimistic.Update(t.Context(), Fenced(h, NewJSON[optest.Counter](client)), optest.Increment, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.Requests != 2 {
			t.Errorf("%d requests, want 2", res.Requests)
		}
	}
	s.Reset()
	_, err := optimistic.Update(t.Context(), Fenced(early, NewJSON[optest.Counter](client)), optest.Increment, nil)
	refusal, ok := errors.AsType[*fence.Error](err)
	if !ok || !errors.Is(err, optimistic.ErrFenced) || refusal.Mine != 7 || refusal.Stored != 8 || refusal.Resource != "box/n.json" {
		t.Errorf("err = %v, want ErrFenced with both tokens", err)
	}
	if got := optest.Ops(s); !slices.Equal(got, []string{"Get Blob"}) || optest.Count(t, client) != 4 {
		t.Errorf("sent %v, n = %d", got, optest.Count(t, client))
	}
}

func TestAHolderPausedBetweenReadAndWriteIsRefused(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	early, late := &optest.Holder{Token: 7}, &optest.Holder{Token: 8}
	_, err := optimistic.Update(t.Context(), Fenced(early, NewJSON[optest.Counter](client)), func(ctx context.Context, c *optest.Counter) error {
		if optimistic.EarlierRuns(ctx) == 0 { // the holder is paused, and a later one writes
			if _, err := optimistic.Update(context.WithoutCancel(ctx), Fenced(late, NewJSON[optest.Counter](client)), optest.Increment, nil); err != nil {
				t.Error(err)
			}
		}
		c.N = 100
		return nil
	}, nil)
	if !errors.Is(err, optimistic.ErrFenced) || optest.Count(t, client) != 2 {
		t.Errorf("err = %v, n = %d:\n%v", err, optest.Count(t, client), s.Log())
	}
}

func TestAnUpdateThatChangesNothingClaimsTheBlob(t *testing.T) {
	_, client := optest.Quiet(t, `{"n":1}`)
	leave := func(context.Context, *optest.Counter) error { return nil }
	claimed, err := optimistic.Update(t.Context(), Fenced(&optest.Holder{Token: 8}, NewJSON[optest.Counter](client)), leave, nil)
	if err != nil || !claimed.Changed {
		t.Fatalf("%+v, %v", claimed, err)
	}
	if again, err := optimistic.Update(t.Context(), Fenced(&optest.Holder{Token: 8}, NewJSON[optest.Counter](client)), leave, nil); err != nil || again.Changed {
		t.Errorf("a second claim writes again: %+v, %v", again, err)
	}
	if _, err := optimistic.Update(t.Context(), Fenced(&optest.Holder{Token: 7}, NewJSON[optest.Counter](client)), optest.Increment, nil); !errors.Is(err, optimistic.ErrFenced) {
		t.Errorf("err = %v", err)
	}
	if _, err := optimistic.Update(t.Context(), NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
		t.Errorf("without a fence: %v", err)
	}
	if _, err := optimistic.Update(t.Context(), Fenced(&optest.Holder{Token: 7}, NewJSON[optest.Counter](client)), optest.Increment, nil); !errors.Is(err, optimistic.ErrFenced) {
		t.Errorf("a writer without a fence has wiped it: %v", err)
	}
}

// TestAHolderThatHasLostTheLockSendsNoWrite: the error of Guard has what the last renewal met in its chain, and was taken for the
// answer to the write: after a renewal that timed out, the outcome of a write that was never sent was unknown.
func TestAHolderThatHasLostTheLockSendsNoWrite(t *testing.T) {
	for name, lost := range optest.LostLocks() {
		synctest.Test(t, func(t *testing.T) {
			s, client := optest.Quiet(t, `{"n":1}`)
			h := &optest.Holder{Token: 7, Lost: lost}
			began := time.Now()
			res, err := optimistic.Update(t.Context(), Fenced(h, NewJSON[optest.Counter](client)), optest.Increment, nil)
			if !errors.Is(err, optest.ErrLockLost) || !strings.Contains(err.Error(), "update box/n.json: not sent: locks/l: lease expired") {
				t.Errorf("%s: err = %v", name, err)
			}
			for _, wrong := range []error{optimistic.ErrOutcomeUnknown, optimistic.ErrNotFound, optimistic.ErrConflict} {
				if errors.Is(err, wrong) {
					t.Errorf("%s: %v is %v", name, err, wrong)
				}
			}
			if o := azerr.Classify(err); o.Ambiguous() || o.Transient() || res.Ambiguous != 0 || h.Asked != 1 || time.Since(began) != 0 {
				t.Errorf("%s: %v is %+v; %+v, asked %d times in %v", name, err, o, res, h.Asked, time.Since(began))
			}
			optest.Requests(t, s, res, 1)
		})
	}
}

// TestALockThatIsLostAfterALostResponseLeavesWhatALookShows: the write may have been applied, and may not be repeated.
func TestALockThatIsLostAfterALostResponseLeavesWhatALookShows(t *testing.T) {
	for kind, applied := range map[aztest.FaultKind]bool{aztest.LoseAnswer: true, aztest.LoseRequest: false} {
		for name, lost := range optest.LostLocks() {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, `{"n":1}`)
				s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Put Blob"), Count: 1})
				h := &optest.Holder{Token: 7}
				h.Wait = func(context.Context) error {
					if h.Asked > 1 {
						return lost
					}
					return nil
				}
				res, err := optimistic.Update(t.Context(), Fenced(h, NewJSON[optest.Counter](client)), optest.Increment, nil)
				if applied && (err != nil || res.Resolved != 1) || !applied && (!errors.Is(err, optimistic.ErrOutcomeUnknown) || !errors.Is(err, optest.ErrLockLost)) {
					t.Errorf("%s, %s: %+v, %v", kind, name, res, err)
				}
				optest.Requests(t, s, res, 3)
			})
		}
	}
}

// TestACallThatEndsWhileItsLockIsInDoubtHasSentNothing: Guard waits for a renewal, and the caller for no longer.
func TestACallThatEndsWhileItsLockIsInDoubtHasSentNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":1}`)
		h := &optest.Holder{Token: 7, Wait: func(ctx context.Context) error {
			<-ctx.Done()
			return azerr.Op("guard", "locks/l", context.Cause(ctx))
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // longer than a try
		defer cancel()
		res, err := optimistic.Update(ctx, Fenced(h, NewJSON[optest.Counter](client)), optest.Increment, nil)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, optimistic.ErrOutcomeUnknown) || res.Ambiguous != 0 || h.Asked != 1 {
			t.Errorf("%+v, %v, asked %d times", res, err, h.Asked)
		}
		optest.Requests(t, s, res, 1)
	})
}

func TestALostResponseToAFencedWriteIsResolved(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	h := &optest.Holder{Token: 7}
	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob"), Count: 1})
	res, err := optimistic.Update(t.Context(), Fenced(h, NewJSON[optest.Counter](client)), optest.Increment, nil)
	if err != nil || res.Ambiguous != 1 || optest.Count(t, client) != 2 || h.Asked != 2 {
		t.Errorf("%+v, %v, n = %d, the holder was asked %d times", res, err, optest.Count(t, client), h.Asked)
	}
}

func TestADocumentUnderALockNoticesALaterHolder(t *testing.T) {
	_, client := optest.Quiet(t, `{"n":1}`)
	early, late := &optest.Holder{Token: 7}, &optest.Holder{Token: 8}
	doc, err := optimistic.NewDocument(Fenced(early, NewJSON[optest.Counter](client)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := doc.Update(t.Context(), optest.Increment); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := optimistic.Update(t.Context(), Fenced(late, NewJSON[optest.Counter](client)), optest.Increment, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := doc.Update(t.Context(), optest.Increment); !errors.Is(err, optimistic.ErrFenced) || optest.Count(t, client) != 4 {
		t.Errorf("err = %v, n = %d", err, optest.Count(t, client))
	}
}

func TestAFencedBlobIsNotDeletedAndADamagedFenceIsRefused(t *testing.T) {
	_, client := optest.Quiet(t, `{"n":1}`)
	target := Fenced(&optest.Holder{Token: 7}, NewJSON[optest.Counter](client))
	v, err := optimistic.Read(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := optimistic.Delete(t.Context(), target, v.State, nil); err == nil || !strings.Contains(err.Error(), "empty content") {
		t.Errorf("err = %v", err)
	}
	set := map[string]string{fence.Key: "x"}
	if _, err := optimistic.Update(t.Context(), NewMetadata(client.BlobClient()), func(_ context.Context, m *map[string]string) error {
		*m = set
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := optimistic.Update(t.Context(), target, optest.Increment, nil); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("err = %v", err)
	}
}

// TestARerunUnderALaterHolderExcludesTheEarlier: it found the operation carried out, stored no fence, and the earlier holder, which had
// been paused, went on writing.
func TestARerunUnderALaterHolderExcludesTheEarlier(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	early, late := &optest.Holder{Token: 7}, &optest.Holder{Token: 8}
	for i, want := range []struct {
		holder   *optest.Holder
		requests int
	}{{early, 2}, {late, 3}, {late, 2}} { // the read, and what stores the fence
		s.Reset()
		once := &optimistic.UpdateOptions{OperationID: "A"}
		res, err := optimistic.Update(t.Context(), Fenced(want.holder, NewJSON[optest.Counter](client)), optest.Increment, once)
		if err != nil || res.AlreadyApplied != (i > 0) || res.Changed == (i > 0) {
			t.Fatalf("run %d: %+v, %v", i, res, err)
		}
		optest.Requests(t, s, res, want.requests)
	}
	if _, err := optimistic.Update(t.Context(), Fenced(early, NewJSON[optest.Counter](client)), optest.Increment, nil); !errors.Is(err, optimistic.ErrFenced) {
		t.Errorf("the earlier holder: %v", err)
	}
	if got := optest.Count(t, client); got != 2 {
		t.Errorf("n = %d", got)
	}
}
