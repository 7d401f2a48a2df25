package files

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	ours "github.com/azconc/azconc/pkg/lease"
)

// A program that has acquired a lease by itself can record itself as the holder, and write the heartbeat.
func TestALeaseOfAnotherProgramCanHaveAHeartbeat(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		id := "11111111-2222-4333-8444-555555555555"
		l, err := lease.NewFileClient(f, &lease.FileClientOptions{LeaseID: &id})
		if err != nil {
			t.Fatal(err)
		}
		target := NewFile(f)
		if _, err := target.Renew(t.Context(), id, ours.Conditions{}); azerr.Classify(err).Kind != azerr.Lost {
			t.Errorf("without a lease: %v", err)
		}
		if _, err := l.Acquire(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s.Reset()
		reply, err := target.Acquire(t.Context(), id, ours.Infinite, ours.Conditions{})
		began := reply.Date
		if want := fileAcquire; err != nil || !slices.Equal(fileOps(s), want) {
			t.Errorf("%v, sent %q, want %q", err, fileOps(s), want)
		}
		bubble.Sleep(10 * time.Second)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set File Metadata"), Count: 1})
		if _, err := target.Renew(t.Context(), id, ours.Conditions{}); !azerr.Classify(err).Ambiguous() {
			t.Errorf("with a lost response: %v", err)
		}
		reply, err = target.Renew(t.Context(), id, ours.Conditions{})
		beat := reply.Date
		if err != nil || beat.Sub(began) < 10*time.Second {
			t.Errorf("%v after %v", err, beat.Sub(began))
		}
		seen, err := pessimistic.Look(t.Context(), NewFile(f), nil)
		if h := LeaseInfoOf(seen); err != nil || h.Owner != locks.OwnName() || !h.Since.Equal(began) || h.Heartbeat.After(beat) || h.Heartbeat.Sub(began) < 10*time.Second {
			t.Errorf("%+v, %v, want it since %v, with a heartbeat at %v", h, err, began, beat)
		}
		if err := BreakStale(t.Context(), f, time.Minute, nil); !errors.Is(err, pessimistic.ErrHeld) {
			t.Errorf("a live holder: %v", err)
		}
		if _, err := l.Break(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := target.Renew(t.Context(), id, ours.Conditions{}); azerr.Classify(err).Kind != azerr.Lost {
			t.Errorf("broken: %v", err)
		}
	})
}
