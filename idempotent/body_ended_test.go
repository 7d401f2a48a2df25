package idempotent

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// TestABodyThatIsNoLongerWaitedForIsNoOutage: the end of a handler's context, while the blob with the body did not answer, counted as a
// failure of the container for which waiting is pointless, and Run ended with it.
func TestABodyThatIsNoLongerWaitedForIsNoOutage(t *testing.T) {
	for name, tt := range map[string]struct {
		ends func(r *rig, stop context.CancelFunc)
		kind observe.Kind
	}{
		"the consumer stops": {func(_ *rig, stop context.CancelFunc) { stop() }, observe.Returned},
		"the message is lost": {func(r *rig, stop context.CancelFunc) {
			if _, err := r.queue.ClearMessages(context.Background(), nil); err != nil {
				r.t.Error(err)
			}
			time.AfterFunc(30*time.Second, stop)
		}, observe.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
				r.sendBody(k, "m", noise(70_000))
				wire := aztest.Inject(r.service, 1)
				wire.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op("Get Blob")})
				c := r.consumer(func(context.Context, *Message) error { t.Error("handled"); return nil },
					ConsumerOptions{ClaimCheck: r.claims(wire), Markers: r.markers, Visibility: 6 * time.Second, SoftStop: time.Second})
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(2*time.Second, func() { tt.ends(r, stop) })
				began := time.Now()
				if err := c.Run(ctx); err != nil {
					t.Errorf("Run: %v after %v", err, time.Since(began))
				}
				if kinds := r.kinds(); !slices.Equal(kinds, []observe.Kind{tt.kind}) {
					t.Errorf("events: %v, want %s", kinds, tt.kind)
				}
			})
		})
	}
}

// TestACountThatIsNoLongerWaitedForIsNoOutage: so did the count of a suspect's starts, in the marker of a message that cannot carry it.
func TestACountThatIsNoLongerWaitedForIsNoOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.queue.EnqueueMessage(t.Context(), "plain", nil); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			r.receiveAndDie(1, time.Second)
			pass(2 * time.Second)
		}
		wire := aztest.Inject(r.service, 1)
		wire.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op("Entity Group Transaction"), Skip: 1, Count: 1})
		c := r.consumer(func(context.Context, *Message) error { t.Error("handled"); return nil },
			ConsumerOptions{Markers: r.markersOver(wire), MaxAttempts: 1, SoftStop: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v\n%v", err, wire.Log())
		}
		if kinds := r.kinds(); !slices.Equal(kinds, []observe.Kind{observe.Returned}) || len(wire.Log()) < 2 {
			t.Errorf("events: %v, requests: %v", kinds, wire.Log())
		}
	})
}
