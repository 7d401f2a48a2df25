package files

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// TestAnUpdateIsOneSpan, with those of its lease below it, and its result counts the requests of all.
func TestAnUpdateIsOneSpan(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		fill(t, s, f, []byte("old"))
		s.Reset()
		var spans pesstest.Spans
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Range"), Count: 1})
		out, err := Update(t.Context(), f, to([]byte("new")), &UpdateOptions{Hooks: observe.Hooks{Span: spans.Span}, Wait: &WaitOptions{}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := spans.Want(
			"files.Update box/f",
			" pessimistic.Acquire box/f",
			"  Acquire Lease box/f",
			"  Get File Properties box/f",
			"  Set File Metadata box/f",
			" Get File box/f",
			" Put Range box/f: lost",
			" Put Range box/f",
			" pessimistic.Release box/f",
			"  Release Lease box/f",
		); diff != "" {
			t.Error(diff)
		}
		if sent := s.Requests(); out.Requests != sent || spans.Requests() != sent {
			t.Errorf("%d requests were sent, the result counts %d, and there are %d spans", sent, out.Requests, spans.Requests())
		}
	})
}

// TestADeletionIsOneSpan, with its look and its deletion.
func TestADeletionIsOneSpan(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		var spans pesstest.Spans
		done, err := Delete(t.Context(), f, &DeleteOptions{Hooks: observe.Hooks{Span: spans.Span}, Wait: &WaitOptions{}})
		if err != nil || done.Requests != spans.Requests() {
			t.Errorf("%+v, %v; %d spans", done, err, spans.Requests())
		}
		if diff := spans.Want("files.Delete box/f", " Get File Properties box/f", " Delete File box/f"); diff != "" {
			t.Error(diff)
		}
	})
}

// TestTheBreakOfAStaleLeaseIsOneSpan, with its two looks.
func TestTheBreakOfAStaleLeaseIsOneSpan(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		orphan(t, s, f)
		var spans pesstest.Spans
		if err := BreakStale(t.Context(), f, time.Minute, &BreakStaleOptions{Hooks: observe.Hooks{Span: spans.Span}}); err != nil {
			t.Error(err)
		}
		if diff := spans.Want("files.BreakStale box/f", " Get File Properties box/f", " Get File Properties box/f", " Break Lease box/f"); diff != "" {
			t.Error(diff)
		}
	})
}
