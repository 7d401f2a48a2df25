package pessimistic

import (
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
)

// A captive portal answers 200 in place of the service, which has not seen the request.
func TestASuccessOfAnIntermediaryIsNoSuccess(t *testing.T) {
	portal := func(op ...string) aztest.Fault {
		return aztest.Fault{Kind: aztest.Page, Match: aztest.Op(op...), Count: 1}
	}
	inBubble(t, func(t *testing.T, w *world) {
		w.Faults.SetFaults(portal("Acquire Blob Lease"), portal("Renew Blob Lease"), portal("Release Blob Lease"))
		l := acquired(t, w, nil)
		bubble.Sleep(13 * time.Second) // a renewal after 10 s, and again about 1 s later
		if seen := w.State("b"); seen != lease.Leased || !l.Valid() {
			t.Errorf("the lease is %s", seen)
		}
		mustRelease(t, l)
		w.WantOps("acquire", "acquire", "renew", "renew", "release", "release")
		if seen := w.State("b"); seen != lease.Available {
			t.Errorf("after the release the lease is %s", seen)
		}
	})
	inBubble(t, func(t *testing.T, w *world) {
		w.Faults.SetFaults(portal("Set Blob Metadata"), portal("Put Blob"), portal("Break Blob Lease"), portal("Get Blob Properties"))
		k := w.lockerOf(nil)
		h := locked(t, k, "job", nil)
		if seen := w.Look("job"); recordIn(seen.Metadata).fence != h.Fence() || seen.ETag != h.ETag() {
			t.Errorf("the lock blob has %+v, want the holder's record", seen)
		}
		if broken, err := k.Break(t.Context(), "job", &BreakOptions{Now: true}); err != nil || !broken.Broken || w.State("job") != lease.Broken {
			t.Errorf("Break = %+v, %v; the lease is %s", broken, err, w.State("job"))
		}
		_ = h.Release(t.Context())
	})
}
