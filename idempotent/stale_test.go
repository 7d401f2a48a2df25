package idempotent

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// Accounts respond 400 InvalidQueryParameterValue to a pop receipt that is not current. A Consumer's receipts are from the service,
// so this is not bad input: another client has the message.
func TestARefusedReceiptOfAConsumerMeansThatItsMessageIsLost(t *testing.T) {
	stale := aztest.Fault{Kind: aztest.Answer, Status: http.StatusBadRequest, Code: "InvalidQueryParameterValue", Match: aztest.Op("Update Message", "Delete Message"), Count: 1}
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		r.service.SetFaults(stale)
		var ended time.Duration
		c := r.consumer(func(ctx context.Context, _ *Message) error {
			began := time.Now()
			<-ctx.Done()
			ended = time.Since(began)
			return context.Cause(ctx)
		}, ConsumerOptions{Visibility: 9 * time.Second, MaxMessages: 1})
		if err := c.Run(t.Context()); err != nil || ended != 6*time.Second || !slices.Equal(r.kinds(), []observe.Kind{observe.Lost}) {
			t.Errorf("%v, ended after %v: %v", err, ended, r.kinds())
		}
	})
	// A message that the service still has under another receipt was not deleted by a request of ours.
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		r.service.SetFaults(stale)
		c := r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Visibility: 9 * time.Second, MaxMessages: 1, Markers: r.markers})
		if err := c.Run(t.Context()); err != nil || !slices.Equal(r.kinds(), []observe.Kind{observe.Failed}) || !errors.Is(r.events[len(r.events)-1].Err, ErrOwnershipLost) {
			t.Errorf("%v: %v", err, r.kinds())
		}
		if n := r.ops()["Delete Message"]; n != 1 && len(r.left(r.queue)) != 1 {
			t.Errorf("%d deletions", n)
		}
	})
}
