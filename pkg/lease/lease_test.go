package lease_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/bloblease"
	"github.com/azconc/azconc/pkg/lease/filelease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resources are the four kinds, each of which exists and is free.
func resources(t *testing.T, s *aztest.Service) map[string]lease.Resource {
	t.Helper()
	if _, err := s.BlockBlob("box", "b").Upload(t.Context(), streaming.NopCloser(strings.NewReader("x")), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.File("share", "f").Create(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	return map[string]lease.Resource{
		"blob":      bloblease.NewBlob(s.BlockBlob("box", "b").BlobClient()),
		"container": bloblease.NewContainer(s.Container("box")),
		"file":      filelease.NewFile(s.File("share", "f")),
		"share":     filelease.NewShare(s.Share("share")),
	}
}

func TestEveryResourceCanBeLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		for name, r := range resources(t, aztest.New(nil)) {
			first, second, none := uuid.NewString(), uuid.NewString(), lease.Conditions{}
			duration, term := 15*time.Second, lease.FixedTerm
			if !r.Supports().Expiry {
				duration, term = lease.Infinite, lease.InfiniteTerm
			}
			step := func(what string, reply lease.Result, err error, id string, kind azerr.Kind) {
				t.Helper()
				if azerr.Classify(err).Kind != kind || err == nil && (reply.ID != id || reply.ETag == "" || reply.Date.IsZero()) {
					t.Errorf("%s: %s: %+v, %v; want kind %v and id %s", name, what, reply, err, kind, id)
				}
			}
			look := func(id string, want lease.State) {
				t.Helper()
				seen, err := r.Look(ctx, id)
				if err != nil || seen.State != want || seen.ETag == "" || (seen.State == lease.Leased) != (seen.Term == term) {
					t.Errorf("%s: seen %+v, %v; want %s", name, seen, err, want)
				}
			}
			look("", lease.Available)
			for range 2 { // the second time, too, the lease is this one
				reply, err := r.Acquire(ctx, first, duration, none)
				step("acquire", reply, err, first, azerr.Other)
			}
			look(first, lease.Leased)
			reply, err := r.Acquire(ctx, second, duration, none)
			step("acquire under another id", reply, err, "", azerr.Held)
			reply, err = r.Renew(ctx, first, none)
			step("renew", reply, err, first, azerr.Other)
			reply, err = r.Renew(ctx, second, none)
			step("renew under another id", reply, err, "", azerr.Lost)
			for range 2 {
				reply, err = r.Change(ctx, first, second, none)
				step("change", reply, err, second, azerr.Other)
			}
			if _, err := r.Look(ctx, first); azerr.Classify(err).Kind != azerr.Lost {
				t.Errorf("%s: a look under the old id: %v", name, err)
			}
			if err := r.Release(ctx, first, none); azerr.Classify(err).Kind != azerr.Lost {
				t.Errorf("%s: a release of the old id: %v", name, err)
			}
			if err := r.Release(ctx, second, none); err != nil {
				t.Errorf("%s: release: %v", name, err)
			}
			look("", lease.Available)
		}
	})
}

func TestABreakLastsForTheReportedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		for name, r := range resources(t, aztest.New(nil)) {
			for _, tt := range []struct {
				period, remaining, ends time.Duration // the service rounds the rest of a lease down
			}{{lease.Natural, 19 * time.Second, 20 * time.Second}, {5 * time.Second, 5 * time.Second, 5 * time.Second}, {0, 0, 0}} {
				if !r.Supports().Expiry {
					tt.remaining, tt.ends = 0, 0
				}
				if _, err := r.Acquire(ctx, uuid.NewString(), 20*time.Second, lease.Conditions{}); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if left, err := r.Break(ctx, tt.period, lease.Conditions{}); err != nil || left != tt.remaining {
					t.Errorf("%s: Break(%v) = %v, %v, want %v", name, tt.period, left, err, tt.remaining)
				}
				bubble.Sleep(tt.ends)
				if seen, err := r.Look(ctx, ""); err != nil || seen.State != lease.Broken || !seen.State.Free() {
					t.Errorf("%s: after %v: %+v, %v", name, tt.ends, seen, err)
				}
			}
		}
	})
}

// TestConditionsThatAreSupportedAreSent: the others are dropped, as Support says.
func TestConditionsThatAreSupportedAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bubble.Sleep(time.Hour)
		for name, r := range resources(t, aztest.New(nil)) {
			for what, tt := range map[string]struct {
				c    lease.Conditions
				sent bool
			}{
				"If-Match":            {lease.Conditions{IfMatch: `"0x1"`}, r.Supports().ETags},
				"If-Tags":             {lease.Conditions{IfTags: `"a" = 'b'`}, r.Supports().ETags},
				"If-Unmodified-Since": {lease.Conditions{IfUnmodifiedSince: time.Now().Add(-time.Hour)}, r.Supports().Dates},
			} {
				id := uuid.NewString()
				duration := 15 * time.Second
				if !r.Supports().Expiry {
					duration = lease.Infinite
				}
				for op, send := range map[string]func(context.Context, lease.Conditions) error{
					"acquire": func(ctx context.Context, c lease.Conditions) error {
						_, err := r.Acquire(ctx, id, duration, c)
						return err
					},
					"break": func(ctx context.Context, c lease.Conditions) error { _, err := r.Break(ctx, 0, c); return err },
				} {
					if op == "break" {
						if _, err := r.Acquire(t.Context(), id, duration, lease.Conditions{}); err != nil {
							t.Fatalf("%s: %v", name, err)
						}
					}
					err := send(t.Context(), tt.c)
					if refused := azerr.Classify(err).Kind == azerr.Conflict; refused != tt.sent || !refused && err != nil {
						t.Errorf("%s: %s with %s: %v, want it refused: %v", name, op, what, err, tt.sent)
					}
					_ = r.Release(t.Context(), id, lease.Conditions{})
				}
			}
		}
	})
}

func TestANilClientIsNoResource(t *testing.T) {
	for _, r := range []lease.Resource{bloblease.NewBlob(nil), bloblease.NewContainer(nil), filelease.NewFile(nil), filelease.NewShare(nil)} {
		if r != nil {
			t.Errorf("%T", r)
		}
	}
}
