package idempotent

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/observe"
)

// TestAMessageIsNotPutBackBeyondItsExpiry: the service refuses a pause that ends after the message has expired. Such a message came back when
// its visibility timeout had passed, as often as that, and none of its attempts counted.
func TestAMessageIsNotPutBackBeyondItsExpiry(t *testing.T) {
	for name, err := range map[string]error{"retried": RetryAfter(errors.New("busy"), time.Hour), "postponed": Postpone(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				if _, err := r.queue.EnqueueMessage(t.Context(), "m", &azqueue.EnqueueMessageOptions{TimeToLive: to.Ptr(int32(120))}); err != nil {
					t.Fatal(err)
				}
				runs := 0
				c := r.consumer(func(context.Context, *Message) error { runs++; return err },
					ConsumerOptions{Visibility: 10 * time.Second, Markers: r.markers, MaxAttempts: -1})
				ctx, cancel := context.WithTimeout(t.Context(), 110*time.Second)
				defer cancel()
				if err := c.Run(ctx); err != nil {
					t.Error(err)
				}
				if kinds := r.kinds(); runs != 1 || !slices.Equal(kinds, []observe.Kind{observe.Retried}) {
					t.Errorf("%d runs, %v", runs, kinds)
				}
			})
		})
	}
}
