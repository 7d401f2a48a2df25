package pessimistic

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
)

// The tests in this file hold the package against answers that real accounts gave and that emulators do not give. See
// pkg/aztest/internal/replay.

// TestALeaseWhoseBreakHasElapsedIsBroken: the service answers LeaseLost, as it does when a lease has expired.
func TestALeaseWhoseBreakHasElapsedIsBroken(t *testing.T) {
	for name, duration := range map[string]time.Duration{"fixed": time.Minute, "infinite": Infinite} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				l := acquired(t, w, &AcquireOptions{Duration: duration})
				if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), &BreakOptions{Now: true}); err != nil {
					t.Fatal(err)
				}
				if lost := mustLost(t, l.Verify(t.Context()), Broken); !azerr.Has(lost, "LeaseLost") {
					t.Errorf("Verify = %v, want LeaseLost in its chain: the premise is gone", lost)
				}
			})
		})
	}
}

// TestAWriteUnderABrokenLeaseIsLost: a fence that fails because of a break must not look like a conflict.
func TestAWriteUnderABrokenLeaseIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		id := l.ID()
		client := w.Service.BlockBlob("box", "b")
		if _, err := Break(t.Context(), NewBlob(client), &BreakOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		_, err := client.SetMetadata(t.Context(), nil, &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{
			LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}}})
		if o := azerr.Classify(err); o.Kind != azerr.Lost || o.Code != "LeaseLost" || o.Transient() {
			t.Errorf("a write under a broken lease: %+v, want it lost because of LeaseLost", o)
		}
		_ = l.Release(t.Context())
	})
}

// answering is a resource that answers a break as the service does: what is left of the duration is rounded down (14 for a
// lease of 15 s, in ten recordings of ten), and a period that is shorter comes back as it was sent.
type answering struct {
	Resource
	until time.Time // the end of its lease
}

func (r answering) Break(ctx context.Context, seconds int32, c lease.Conditions) (time.Duration, error) {
	_, err := r.Resource.Break(ctx, seconds, c)
	left := time.Until(r.until).Truncate(time.Second)
	if period := time.Duration(seconds) * time.Second; seconds >= 0 && period < left {
		left = period
	}
	return max(left, 0), err
}

// TestABrokenLeaseIsFreeWhenBreakSaysSo: and it is not free more than a second earlier.
func TestABrokenLeaseIsFreeWhenBreakSaysSo(t *testing.T) {
	const duration = 15 * time.Second
	for _, tt := range []struct {
		at   time.Duration // after the acquisition
		opts *BreakOptions
		more int // requests beside the break
	}{
		{300 * time.Millisecond, nil, 0},
		{14*time.Second + 300*time.Millisecond, nil, 1},
		{300 * time.Millisecond, &BreakOptions{Grace: 5 * time.Second}, 0},
		{300 * time.Millisecond, &BreakOptions{Grace: time.Minute}, 0},
		{11*time.Second + 300*time.Millisecond, &BreakOptions{Grace: 4 * time.Second}, 0},
		{300 * time.Millisecond, &BreakOptions{Now: true}, 0},
	} {
		inBubble(t, func(t *testing.T, w *world) {
			target := answering{NewBlob(w.Blob("b")), time.Now().Add(duration)}
			if _, err := target.Acquire(t.Context(), uuid.NewString(), int32(duration/time.Second), lease.Conditions{}); err != nil {
				t.Fatal(err)
			}
			bubble.Sleep(tt.at)
			w.Reset()
			most, err := Break(t.Context(), target, tt.opts)
			if err != nil || len(w.Ops()) != 1+tt.more {
				t.Errorf("at %v, %+v: %v, after %v", tt.at, tt.opts, err, w.Ops())
			}
			asked := time.Now()
			for !w.State("b").Free() {
				bubble.Sleep(100 * time.Millisecond)
			}
			if took := time.Since(asked); took > most || took < most-time.Second {
				t.Errorf("at %v, %+v: free after %v, and Break said %v", tt.at, tt.opts, took, most)
			}
		})
	}
}

// TestAnInfiniteLeaseThatIsBrokenIsFreeAtOnce: the service answers 0, as for a part of a second.
func TestAnInfiniteLeaseThatIsBrokenIsFreeAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.steal("b", Infinite)
		if most, err := Break(t.Context(), NewBlob(w.Blob("b")), nil); err != nil || most != 0 || !w.State("b").Free() {
			t.Errorf("%v, %v, %v", most, err, w.State("b"))
		}
	})
}
