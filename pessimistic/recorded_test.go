package pessimistic

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/pkg/azerr"
)

// The tests in this file hold the package against answers that real accounts gave and that emulators do not give. See
// pkg/aztest/internal/replay.

// TestALeaseWhoseBreakHasElapsedIsBroken: the service answers LeaseLost, as it does when a lease has expired.
func TestALeaseWhoseBreakHasElapsedIsBroken(t *testing.T) {
	for name, duration := range map[string]time.Duration{"fixed": time.Minute, "infinite": Infinite} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				l := acquired(t, w, &AcquireOptions{Duration: duration})
				if _, err := Break(t.Context(), Blob(w.Service.BlockBlob("box", "b")), &BreakOptions{Now: true}); err != nil {
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
		if _, err := Break(t.Context(), Blob(client), &BreakOptions{Now: true}); err != nil {
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
