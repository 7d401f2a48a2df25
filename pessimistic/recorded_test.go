package pessimistic

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
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

// TestABrokenLeaseIsFreeWhenBreakSaysSo, and it is not free more than a second earlier: the service rounds what is left of the
// duration down (14 for a lease of 15 s, in ten recordings of ten), and a period that is shorter comes back as it was sent.
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
			target := NewBlob(w.Blob("b"))
			if _, err := target.Acquire(t.Context(), uuid.NewString(), duration, lease.Conditions{}); err != nil {
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

// TestTheFirstHolderWaitsForTheDateHeader, which lags: for 1.5 s on average and 2.1 s at most, and 3 s where this machine's
// clock is off. Nobody holds a fence whose second has not begun.
func TestTheFirstHolderWaitsForTheDateHeader(t *testing.T) {
	const locks = 100
	for name, tt := range map[string]struct {
		off, most time.Duration // off is by how much this machine's clock is further off for each lock
	}{"a right clock": {0, 2100 * time.Millisecond}, "a wrong clock": {130 * time.Millisecond, 3050 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldWith(t, &aztest.Options{DateLag: pesstest.DateLag})
				k, off := w.lockerOf(nil), time.Duration(0)
				k.opts.clockJump = func() time.Duration { return off }
				var sum, longest time.Duration
				for i := range locks {
					bubble.Sleep(370 * time.Millisecond)
					off += tt.off
					began := time.Now()
					h := locked(t, k, fmt.Sprint(i), nil)
					took := time.Since(began)
					sum, longest = sum+took, max(longest, took)
					if h.Fence().Second().After(time.Now()) {
						t.Errorf("%v is the fence at %v", h.Fence(), time.Now())
					}
					mustRelease(t, h.lease)
				}
				if longest > tt.most || longest < tt.most-600*time.Millisecond {
					t.Errorf("the longest wait was %v, want about %v", longest, tt.most)
				}
				if mean := sum / locks; tt.off == 0 && (mean < 1300*time.Millisecond || mean > 1700*time.Millisecond) {
					t.Errorf("the mean wait was %v, want 1.5 s", mean)
				}
			})
		})
	}
}

// TestALaterHolderWaitsASecondAtMost: only where Date has gone back behind the second of the stored fence, which the fence of
// the next holder follows.
func TestALaterHolderWaitsASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, &aztest.Options{DateLag: pesstest.DateLag})
		mustRelease(t, locked(t, w.lockerOf(nil), "job", nil).lease)
		waited, last := 0, fence.Token(0)
		for range 100 {
			began := time.Now()
			h := locked(t, w.lockerOf(nil), "job", nil)
			took := time.Since(began)
			if h.Fence() <= last || took > time.Second+2*driftMargin {
				t.Errorf("%d after %d, and after %v", h.Fence(), last, took)
			}
			if took > 0 {
				waited++
			}
			last = h.Fence()
			mustRelease(t, h.lease)
			bubble.Sleep(150 * time.Millisecond)
		}
		if waited == 0 || waited > 50 {
			t.Errorf("%d of 100 holders waited", waited)
		}
	})
}
