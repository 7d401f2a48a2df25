package pessimistic

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/observe"
)

// TestALockIsOneSpanAndOneForEachRequest: with a lost response and a renewal, each request is a child of its operation, and
// Stats counts what the service was sent.
func TestALockIsOneSpanAndOneForEachRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var spans pesstest.Spans
		k := w.lockerOf(&LockerOptions{Hooks: observe.Hooks{Span: spans.Span}})
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Blob Metadata"), Count: 1})
		h, err := k.Lock(t.Context(), "job", nil)
		if err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(h.Duration() / 2)
		if err := h.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		mustRelease(t, h.lease)
		if diff := spans.Want(
			"pessimistic.Lock box/job",
			" Get Blob Properties box/job: BlobNotFound",
			" Put Blob box/job",
			" Acquire Lease box/job",
			" Set Blob Metadata box/job: lost",
			" Set Blob Metadata box/job: ConditionNotMet",
			" Get Blob Properties box/job",
			"pessimistic.Renew box/job",
			" Renew Lease box/job",
			"pessimistic.Verify box/job",
			" Get Blob Properties box/job",
			"pessimistic.Release box/job",
			" Get Blob box/job.azconc-waiters: BlobNotFound",
			" Release Lease box/job",
		); diff != "" {
			t.Error(diff)
		}
		if sent := len(w.Sent()); h.Stats().Requests != sent || spans.Requests() != sent {
			t.Errorf("%d requests were sent, Stats counts %d, and there are %d spans", sent, h.Stats().Requests, spans.Requests())
		}
	})
}

// TestEveryOperationIsASpan of its own name.
func TestEveryOperationIsASpan(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		var spans pesstest.Spans
		hooks := observe.Hooks{Span: spans.Span}
		target := NewBlob(w.Blob("b"))
		l, err := Acquire(ctx, target, &AcquireOptions{Hooks: hooks})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Renew(ctx); err != nil {
			t.Error(err)
		}
		if _, err := TryAcquire(ctx, target, &AcquireOptions{Hooks: hooks}); !errors.Is(err, ErrHeld) {
			t.Errorf("TryAcquire: %v", err)
		}
		if _, err := Look(ctx, target, &LookOptions{Hooks: hooks}); err != nil {
			t.Error(err)
		}
		if _, err := Break(ctx, target, &BreakOptions{Now: true, Hooks: hooks}); err != nil {
			t.Error(err)
		}
		_ = l.Release(ctx)
		if diff := spans.Want(
			"pessimistic.Acquire box/b", " Acquire Lease box/b",
			"pessimistic.Renew box/b", " Renew Lease box/b",
			"pessimistic.Acquire box/b: LeaseAlreadyPresent", " Acquire Lease box/b: LeaseAlreadyPresent",
			"pessimistic.Look box/b", " Get Blob Properties box/b",
			"pessimistic.Break box/b", " Break Lease box/b",
			"pessimistic.Release box/b", " Release Lease box/b",
		); diff != "" {
			t.Error(diff)
		}
		spans = pesstest.Spans{}
		k := w.lockerOf(&LockerOptions{Hooks: hooks})
		for range k.List(ctx, nil) {
			t.Error("there are no locks")
		}
		if _, err := k.Show(ctx, "job"); !errors.Is(err, ErrNotFound) {
			t.Errorf("Show: %v", err)
		}
		if _, err := k.Break(ctx, "job", nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("Break: %v", err)
		}
		if _, err := k.GC(ctx, nil); err != nil {
			t.Error(err)
		}
		if diff := spans.Want(
			"pessimistic.List box", " List Blobs box",
			"pessimistic.Show box/job: BlobNotFound", " Get Blob Properties box/job: BlobNotFound",
			"pessimistic.Break box/job: BlobNotFound", " Get Blob Properties box/job: BlobNotFound",
			"pessimistic.GC box", " Get Container Properties box", " List Blobs box",
		); diff != "" {
			t.Error(diff)
		}
	})
}

// TestTheWorkIsNoPartOfTheSpanThatBeganIt: a span of the work, which lasts, is no child of one that has ended.
func TestTheWorkIsNoPartOfTheSpanThatBeganIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var spans pesstest.Spans
		hooks := observe.Hooks{Span: spans.Span}
		l, err := Acquire(t.Context(), NewBlob(w.Blob("b")), &AcquireOptions{Hooks: hooks})
		if err != nil {
			t.Fatal(err)
		}
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		<-l.Context().Done()
		bubble.Sleep(15 * time.Second)
		w.Faults.SetFaults()
		before := len(spans.Tree())
		again, err := l.Reclaim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, end := hooks.Start(again.Context(), observe.Span{Name: "work"})
		end(nil)
		h, err := w.lockerOf(&LockerOptions{Hooks: hooks}).Lock(t.Context(), "job", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, end = hooks.Start(h.Context(), observe.Span{Name: "work"})
		end(nil)
		_, _ = again.Release(context.Background()), h.Release(context.Background())
		if got := spans.Tree()[before:]; len(got) < 4 || got[0] != "pessimistic.Reclaim box/b" || got[1] != " Renew Lease box/b" || got[2] != "work " {
			t.Errorf("spans %q, want the work beside the reclaim", got)
		} else if got[8] != "work " {
			t.Errorf("spans %q, want the work beside the lock", got)
		}
	})
}
