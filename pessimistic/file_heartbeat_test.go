package pessimistic

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"

	"github.com/azconc/azconc/pkg/aztest"
)

// TestWhoHoldsALeaseOfHisOwnCanBeHeardOf: without this package's Acquire, and so without its heartbeat.
func TestWhoHoldsALeaseOfHisOwnCanBeHeardOf(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		id := "11111111-2222-4333-8444-555555555555"
		l, err := lease.NewFileClient(f, &lease.FileClientOptions{LeaseID: &id})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Heartbeat(t.Context(), f, id, true); !errors.Is(err, ErrLost) {
			t.Errorf("without a lease: %v", err)
		}
		if _, err := l.Acquire(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s.Reset()
		began, err := Heartbeat(t.Context(), f, id, true)
		if want := fileAcquire[1:]; err != nil || !slices.Equal(fileOps(s), want) {
			t.Errorf("%v, sent %q, want %q", err, fileOps(s), want)
		}
		pass(10 * time.Second)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set File Metadata"), Count: 1})
		beat, err := Heartbeat(t.Context(), f, id, false) // the SDK sends it again
		if err != nil || beat.Sub(began) < 10*time.Second {
			t.Errorf("%v after %v", err, beat.Sub(began))
		}
		seen, err := Look(t.Context(), File(f), nil)
		if h := HolderOf(seen); err != nil || h.Name != ownName() || !h.Since.Equal(began) || h.Heard.After(beat) || h.Heard.Sub(began) < 10*time.Second {
			t.Errorf("%+v, %v, want since %v, heard of at %v", h, err, began, beat)
		}
		if err := BreakStale(t.Context(), f, time.Minute); !errors.Is(err, ErrHeld) {
			t.Errorf("he is alive: %v", err)
		}
		if _, err := l.Break(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := Heartbeat(t.Context(), f, id, false); !errors.Is(err, ErrLost) {
			t.Errorf("broken: %v", err)
		}
		if _, err := Heartbeat(t.Context(), s.File("box", "none"), id, false); !errors.Is(err, ErrNotFound) {
			t.Errorf("no file: %v", err)
		}
	})
}
