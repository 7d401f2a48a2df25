package optimistic_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/pages"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

func filled(fill byte) []byte { return bytes.Repeat([]byte{fill}, pages.PageSize) }

func fillWith(fill byte) func(context.Context, *[]byte) error {
	return func(_ context.Context, data *[]byte) error {
		for i := range *data {
			(*data)[i] = fill
		}
		return nil
	}
}

func allPages(t *testing.T, client *pageblob.Client) []byte {
	t.Helper()
	data := make([]byte, *optest.PropertiesOf(t, client.BlobClient()).ContentLength)
	if _, err := client.DownloadBuffer(context.Background(), data, nil); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestARangeOfPagesIsWrittenAndNothingElse(t *testing.T) {
	s := aztest.New(nil)
	client := optest.MakePages(t, s, 4*pages.PageSize)
	if _, err := client.SetMetadata(t.Context(), map[string]*string{"owner": new("team a")}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := pages.Put(t.Context(), client, 0, bytes.Repeat([]byte{7}, 4*pages.PageSize), nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	res, err := optimistic.Update(t.Context(), pages.NewRange(client, pages.PageSize, 2*pages.PageSize), fillWith(1), nil)
	if err != nil || !res.Changed {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 2)
	if h := s.Log()[1].Header; h.Get("If-Match") != string(res.BaseETag) {
		t.Errorf("If-Match: %s", h.Get("If-Match"))
	}
	if want := bytes.Join([][]byte{filled(7), filled(1), filled(1), filled(7)}, nil); !bytes.Equal(allPages(t, client), want) {
		t.Error("the content is not as expected")
	}
	if p := optest.PropertiesOf(t, client.BlobClient()); *p.Metadata["Owner"] != "team a" {
		t.Errorf("metadata %v", p.Metadata)
	}
	// Zeros are cleared, so they take no room.
	if res, err = optimistic.Update(t.Context(), pages.NewRange(client, 0, pages.PageSize), fillWith(0), nil); err != nil {
		t.Fatal(err)
	}
	if log := s.Log(); log[len(log)-1].Header.Get("X-Ms-Page-Write") != "clear" {
		t.Errorf("zeros were sent with %v", log[len(log)-1].Header)
	}
	pager := client.NewGetPageRangesPager(&pageblob.GetPageRangesOptions{Range: blob.HTTPRange{}})
	ranges, err := pager.NextPage(t.Context())
	if err != nil || len(ranges.PageRange) != 1 || *ranges.PageRange[0].Start != pages.PageSize {
		t.Errorf("ranges %+v, %v", ranges.PageList, err)
	}
}

// TestTheSamePagesAreNoProof: a response is lost, and the pages are as they were sent.
func TestTheSamePagesAreNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		client := optest.MakePages(t, s, 4*pages.PageSize)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		res, err := optimistic.Update(t.Context(), pages.NewRange(client, 0, 2*pages.PageSize), fillWith(1), nil)
		if !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// TestTwoRangesOfOneBlobDoNotLoseEachOther: the guard is the version of the whole blob.
func TestTwoRangesOfOneBlobDoNotLoseEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: optest.Latencies(3)})
		optest.MakePages(t, s, 4*pages.PageSize)
		count := func(_ context.Context, data *[]byte) error { (*data)[0]++; return nil }
		var wg sync.WaitGroup
		for i := range int64(2) {
			target := pages.NewRange(optest.PagesOf(s), i*2*pages.PageSize, 2*pages.PageSize)
			for range 2 {
				wg.Go(func() {
					for range 30 {
						if _, err := optimistic.Update(context.Background(), target, count, &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1, SendOptions: optest.Quick}); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if data := allPages(t, optest.PagesOf(s)); data[0] != 60 || data[2*pages.PageSize] != 60 {
			t.Errorf("counted %d and %d, want 60 each", data[0], data[2*pages.PageSize])
		}
	})
}

func TestAFenceIsEnforcedByTheSequenceNumber(t *testing.T) {
	s := aztest.New(nil)
	client := optest.MakePages(t, s, 2*pages.PageSize)
	raise := func(n, want int64) {
		t.Helper()
		got, res, err := pages.RaiseSequenceNumber(t.Context(), client, n, nil)
		if err != nil || got != want || res.Requests != 1 {
			t.Errorf("RaiseSequenceNumber(%d) = %d, %+v, %v, want %d", n, got, res, err, want)
		}
	}
	raise(5, 5)
	old, next := int64(5), int64(8)
	if _, err := pages.Put(t.Context(), client, 0, filled(1), &pages.PutOptions{Sequence: pages.SequenceConditions{IfAtMost: &old}}); err != nil {
		t.Fatal(err)
	}
	raise(8, 8) // a new holder
	raise(5, 8) // a delayed raise changes nothing
	fenced := pages.NewRange(client, 0, pages.PageSize)
	fenced.Sequence.IfAtMost = &old
	for name, err := range map[string]error{
		"put":    optest.ErrorOf(pages.Put(t.Context(), client, 0, filled(2), &pages.PutOptions{Sequence: pages.SequenceConditions{IfAtMost: &old}})),
		"equal":  optest.ErrorOf(pages.Put(t.Context(), client, 0, filled(2), &pages.PutOptions{Sequence: pages.SequenceConditions{IfEqual: &old}})),
		"less":   optest.ErrorOf(pages.Put(t.Context(), client, 0, filled(2), &pages.PutOptions{Sequence: pages.SequenceConditions{IfLess: &next}})),
		"update": optest.ErrorOf(optimistic.Update(t.Context(), fenced, fillWith(2), nil)),
	} {
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || conflict.Reason != azerr.Sequence {
			t.Errorf("%s: err = %v, want a conflict about the sequence number", name, err)
		}
	}
	fenced.Sequence.IfAtMost = &next
	if _, err := optimistic.Update(t.Context(), fenced, fillWith(3), nil); err != nil {
		t.Errorf("the new holder: %v", err)
	}
	// The number is raised between the read and the write: it is the write that fails, and the next read ends it.
	_, err := optimistic.Update(t.Context(), fenced, func(ctx context.Context, data *[]byte) error {
		if _, _, err := pages.RaiseSequenceNumber(ctx, client, 9, nil); err != nil {
			return err
		}
		return fillWith(4)(ctx, data)
	}, nil)
	if !errors.Is(err, optimistic.ErrConflict) || allPages(t, client)[0] != 3 {
		t.Errorf("err = %v, page %d", err, allPages(t, client)[0])
	}
}

func TestASequenceNumberIsRaisedUnderEveryFault(t *testing.T) {
	for name, fault := range optest.Every(aztest.Writes) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				client := optest.MakePages(t, s, pages.PageSize)
				s.SetFaults(fault)
				n, res, err := pages.RaiseSequenceNumber(t.Context(), client, 7, nil)
				s.SetFaults()
				s.Flush()
				if now := *optest.PropertiesOf(t, client.BlobClient()).BlobSequenceNumber; err != nil || n != 7 || now != 7 {
					t.Errorf("RaiseSequenceNumber = %d, %+v, %v; the number is %d\n%v", n, res, err, now, s.Log())
				}
			})
		})
	}
}

func TestPutPagesUnderEveryFault(t *testing.T) {
	for name, fault := range optest.Every(aztest.Writes) {
		for _, guarded := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(nil)
					client := optest.MakePages(t, s, pages.PageSize)
					var o pages.PutOptions
					if guarded {
						o.Conditions.IfMatch = *optest.PropertiesOf(t, client.BlobClient()).ETag
					}
					s.SetFaults(fault)
					res, err := pages.Put(t.Context(), client, 0, filled(1), &o)
					s.SetFaults()
					s.Flush()
					if allPages(t, client)[0] != 1 {
						t.Errorf("not written: %+v, %v", res, err)
					}
					open := errors.Is(err, optimistic.ErrOutcomeUnknown) || fault.Kind == aztest.AnswerTwice && errors.Is(err, optimistic.ErrConflict)
					if err != nil && !(guarded && open) {
						t.Errorf("err = %v\n%v", err, s.Log())
					}
				})
			})
		}
	}
}

func TestRangesOfPagesAreChecked(t *testing.T) {
	s := aztest.New(nil)
	client := optest.MakePages(t, s, 2*pages.PageSize)
	for _, r := range []pages.Range{
		pages.NewRange(client, 1, pages.PageSize), pages.NewRange(client, 0, 100), pages.NewRange(client, -pages.PageSize, pages.PageSize), pages.NewRange(client, 0, 0), pages.NewRange(client, 0, 8<<20),
	} {
		if _, err := optimistic.Update(t.Context(), r, fillWith(1), nil); err == nil {
			t.Errorf("%d bytes at %d: no error", r.Count, r.Offset)
		}
		if _, err := pages.Put(t.Context(), client, r.Offset, make([]byte, max(r.Count, 0)), nil); err == nil && r.Offset != 0 {
			t.Errorf("put %d bytes at %d: no error", r.Count, r.Offset)
		}
	}
	for _, o := range []*pages.PutOptions{{Conditions: optimistic.Conditions{IfMatch: "bare"}}} {
		if _, err := pages.Put(t.Context(), client, 0, filled(1), o); err == nil {
			t.Error("no error")
		}
	}
	if s.Requests() != 0 {
		t.Errorf("sent %v", s.Log())
	}
	if _, err := optimistic.Update(t.Context(), pages.NewRange(client, pages.PageSize, 2*pages.PageSize), fillWith(1), nil); err == nil {
		t.Error("a range beyond the end was written")
	}
	if _, err := optimistic.Update(t.Context(), pages.NewRange(client, 4*pages.PageSize, pages.PageSize), fillWith(1), nil); err == nil {
		t.Error("a range beyond the end was written")
	}
	if _, err := optimistic.Update(t.Context(), pages.NewRange(client, 0, pages.PageSize), func(_ context.Context, data *[]byte) error { *data = (*data)[:100]; return nil }, nil); err == nil {
		t.Error("a value of another length was written")
	}
	none := s.Container("box").NewPageBlobClient("none")
	if _, err := optimistic.Update(t.Context(), pages.NewRange(none, 0, pages.PageSize), fillWith(1), nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("err = %v, want not found", err)
	}
	if _, _, err := pages.RaiseSequenceNumber(t.Context(), none, 1, nil); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("err = %v, want not found", err)
	}
	if _, _, err := pages.RaiseSequenceNumber(t.Context(), client, -1, nil); err == nil {
		t.Error("a negative number was sent")
	}
}
