package optimistic_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func open(t *testing.T, s *aztest.Service, opts *optimistic.DocumentOptions) *optimistic.Document[optest.Counter] {
	t.Helper()
	d, err := optimistic.NewDocument(blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAnOpenDocumentIsUpdatedWithOneRequest(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":0}`)
	d := open(t, s, nil)
	for i, want := range []int{2, 1, 1, 1} {
		s.Reset()
		res, err := d.Update(t.Context(), optest.Increment)
		if err != nil || res.Folded != 1 || !res.Changed {
			t.Fatalf("update %d: %+v, %v", i, res, err)
		}
		optest.Requests(t, s, res, want)
		if res.ETag != optest.ETagOf(t, client) {
			t.Errorf("update %d: ETag %s, the blob has %s", i, res.ETag, optest.ETagOf(t, client))
		}
	}
	if got := optest.Count(t, client); got != 4 {
		t.Errorf("n = %d", got)
	}
}

// TestADocumentReadsAgainAfterMaxAge however often it has written since it read: a write does not see index tags that others
// have set.
func TestADocumentReadsAgainAfterMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := optest.Quiet(t, `{"n":0}`)
		d := open(t, s, &optimistic.DocumentOptions{MaxAge: time.Minute})
		for i, want := range []int{2, 1, 1, 2, 1, 1, 2} {
			s.Reset()
			res, err := d.Update(t.Context(), optest.Increment)
			if err != nil {
				t.Fatal(err)
			}
			if res.Requests != want {
				t.Errorf("update %d, %d s after the first: %d requests, want %d", i, i*25, res.Requests, want)
			}
			bubble.Sleep(25 * time.Second)
		}
	})
}

func TestADocumentNoticesOtherWriters(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":0}`)
	d := open(t, s, &optimistic.DocumentOptions{Update: optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmNever}}})
	if _, err := d.Update(t.Context(), optest.Increment); err != nil {
		t.Fatal(err)
	}
	optest.Put(t, client, `{"n":10}`)
	s.Reset()
	res, err := d.Update(t.Context(), optest.Increment)
	if err != nil || res.Conflicts != 1 {
		t.Fatalf("Update = %+v, %v", res, err)
	}
	optest.Requests(t, s, res, 3) // refused, read, written
	if got := optest.Count(t, client); got != 11 {
		t.Errorf("n = %d, want 11", got)
	}
}

func TestAChangeOfAStaleValueRunsAgain(t *testing.T) {
	limit := errors.New("limit reached")
	for name, change := range map[string]func(context.Context, *optest.Counter) error{
		"an error": func(_ context.Context, c *optest.Counter) error {
			if c.N < 10 {
				return limit
			}
			return optest.Increment(context.Background(), c)
		},
		"no change": func(_ context.Context, c *optest.Counter) error {
			if c.N >= 10 {
				c.N++
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := optest.Quiet(t, `{"n":0}`)
			d := open(t, s, nil)
			if _, err := d.Update(t.Context(), optest.Increment); err != nil {
				t.Fatal(err)
			}
			optest.Put(t, client, `{"n":10}`) // behind the document's back
			res, err := d.Update(t.Context(), change)
			if err != nil || !res.Changed || optest.Count(t, client) != 11 {
				t.Errorf("Update = %+v, %v, n = %d", res, err, optest.Count(t, client))
			}
		})
	}
}

// TestConcurrentUpdatesFold: updates that wait while a write is under way share the next one.
func TestConcurrentUpdatesFold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
		client := s.BlockBlob("box", "n.json")
		optest.Put(t, client, `{"n":0}`)
		d := open(t, s, nil)
		s.Reset()
		broken := errors.New("broken")
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				res, err := d.Update(context.Background(), func(_ context.Context, c *optest.Counter) error {
					c.N++
					if i%8 == 7 {
						return broken // and c.N must not count
					}
					return nil
				})
				if failed := i%8 == 7; failed != errors.Is(err, broken) || failed == res.Changed || res.Folded == 0 {
					t.Errorf("change %d: %+v, %v", i, res, err)
				}
			})
		}
		wg.Wait()
		if got := optest.Count(t, client); got != 56 {
			t.Errorf("n = %d, want 56", got)
		}
		if got := s.Requests() - 1; got > 4 { // the count itself is one
			t.Errorf("%d requests for 64 updates, want two folds:\n%v", got, s.Log())
		}
	})
}

func TestAFoldIsAppliedOnceUnderEveryFault(t *testing.T) {
	for name, fault := range optest.Every(aztest.Writes) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, `{"n":0}`)
				d := open(t, s, nil)
				s.SetFaults(fault)
				var wg sync.WaitGroup
				for range 8 {
					wg.Go(func() {
						if _, err := d.Update(context.Background(), optest.Increment); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				s.SetFaults()
				s.Flush()
				if got := optest.Count(t, client); got != 8 {
					t.Errorf("n = %d, want 8", got)
				}
			})
		})
	}
}

func TestAPanicBelongsToItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return time.Millisecond }})
		client := s.BlockBlob("box", "n.json")
		optest.Put(t, client, `{"n":0}`)
		d := open(t, s, nil)
		var wg sync.WaitGroup
		panics := 0
		for i := range 4 {
			wg.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						panics++
						if i != 2 || p != "boom" {
							t.Errorf("change %d panicked with %v", i, p)
						}
					}
				}()
				_, err := d.Update(context.Background(), func(_ context.Context, c *optest.Counter) error {
					if i == 2 {
						panic("boom")
					}
					return optest.Increment(context.Background(), c)
				})
				if err != nil {
					t.Errorf("change %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if got := optest.Count(t, client); got != 3 || panics != 1 {
			t.Errorf("n = %d after %d panics", got, panics)
		}
	})
}

func TestACallerThatGivesUpLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return time.Second }})
		client := s.BlockBlob("box", "n.json")
		optest.Put(t, client, `{"n":0}`)
		d := open(t, s, nil)
		reason := errors.New("gave up")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := d.Update(context.Background(), optest.Increment); err != nil {
				t.Error(err)
			}
		})
		bubble.Sleep(10 * time.Millisecond) // the first one is reading
		ctx, cancel := context.WithCancelCause(t.Context())
		wg.Go(func() {
			_, err := d.Update(ctx, func(context.Context, *optest.Counter) error {
				t.Error("the change ran")
				return nil
			})
			if !errors.Is(err, reason) {
				t.Errorf("err = %v", err)
			}
		})
		bubble.Sleep(10 * time.Millisecond)
		cancel(reason)
		wg.Wait()
		if got := optest.Count(t, client); got != 1 {
			t.Errorf("n = %d", got)
		}
	})
}

func TestAFoldContinuesWhileAnyCallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return time.Second }})
		client := s.BlockBlob("box", "n.json")
		optest.Put(t, client, `{"n":0}`)
		d := open(t, s, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		hold := make(chan struct{})
		wg.Go(func() { // keeps the turn, so that the next two fold
			_, _ = d.Update(context.Background(), func(_ context.Context, c *optest.Counter) error {
				<-hold
				return optest.Increment(context.Background(), c)
			})
		})
		synctest.Wait()
		bubble.Sleep(1500 * time.Millisecond)
		wg.Go(func() { _, _ = d.Update(ctx, optest.Increment) })
		synctest.Wait()
		wg.Go(func() {
			if _, err := d.Update(context.Background(), optest.Increment); err != nil {
				t.Errorf("the caller that waits: %v", err)
			}
		})
		synctest.Wait()
		close(hold)
		bubble.Sleep(1200 * time.Millisecond) // the fold of two is being written
		cancel()
		wg.Wait()
		if got := optest.Count(t, client); got != 3 {
			t.Errorf("n = %d, want 3", got)
		}
	})
}

func TestADocumentRemembersItsReads(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":5}`)
	d := open(t, s, nil)
	v, err := d.Read(t.Context())
	if err != nil || v.Value.N != 5 || v.ETag != optest.ETagOf(t, client) {
		t.Fatalf("Read = %+v, %v", v, err)
	}
	v.Value.N = 99 // belongs to the caller
	s.Reset()
	res, err := d.Update(t.Context(), optest.Increment)
	if err != nil || optest.Count(t, client) != 6 {
		t.Errorf("Update = %+v, %v, n = %d", res, err, optest.Count(t, client))
	}
	if res.Requests != 1 {
		t.Errorf("%d requests after a read, want 1", res.Requests)
	}
}

func TestADocumentWritesAValueThatItHeldBefore(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":0}`)
	d := open(t, s, nil)
	for i := range 6 { // 1, 0, 1, 0, …: each differs from the last, not from the first
		want := (i + 1) % 2
		if _, err := d.Update(t.Context(), func(_ context.Context, c *optest.Counter) error { c.N = want; return nil }); err != nil {
			t.Fatal(err)
		}
		if got := optest.Count(t, client); got != want {
			t.Fatalf("n = %d, want %d", got, want)
		}
	}
}

// TestADocumentDoesNotTryAgainWhatItsOwnConditionForbids: it tried until its time was up, as if others were writing.
func TestADocumentDoesNotTryAgainWhatItsOwnConditionForbids(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := optest.Quiet(t, `{"n":1}`)
		d := open(t, s, &optimistic.DocumentOptions{Update: optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfTags: `"a" = 'b'`}}})
		res, err := d.Update(t.Context(), optest.Increment)
		if !errors.Is(err, optimistic.ErrConflict) {
			t.Errorf("Update = %+v, %v", res, err)
		}
		optest.Requests(t, s, res, 3) // read, refused, and read to find no other writer
	})
}

func TestBadDocumentsAreRefused(t *testing.T) {
	s, _ := optest.Quiet(t, "")
	for name, o := range map[string]*optimistic.DocumentOptions{
		"operation": {Update: optimistic.UpdateOptions{OperationID: "x"}},
		"pinned":    {Update: optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfMatch: `"0x1"`}}},
		"not at":    {Update: optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfNoneMatch: `"0x1"`}}},
		"new":       {Update: optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}}},
		"since":     {Update: optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfModifiedSince: time.Now()}}},
		"not since": {Update: optimistic.UpdateOptions{Conditions: optimistic.Conditions{IfUnmodifiedSince: time.Now()}}},
	} {
		if _, err := optimistic.NewDocument(blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), o); err == nil || !strings.Contains(err.Error(), "use Update") {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := open(t, s, nil)
	if _, err := d.Update(t.Context(), optest.Increment); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("a missing blob: %v", err)
	}
}
