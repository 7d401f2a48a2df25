package idempotent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// suspendedFrom has the machine suspended at a time, for so long: the wall clock advances, and timers stand still.
func suspendedFrom(t *testing.T, at time.Time, d time.Duration) {
	queues.Suspended = func(since time.Time) time.Duration {
		if !since.Before(at) || time.Now().Before(at) {
			return 0
		}
		return d
	}
	t.Cleanup(func() { queues.Suspended = nil })
}

// TestAHandlerEndsWithinASecondOfASuspension: a machine that slept through the visibility timeout woke with a handler that worked on for
// two thirds of it, while another consumer handled the message.
func TestAHandlerEndsWithinASecondOfASuspension(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		at := time.Now().Add(5 * time.Second)
		suspendedFrom(t, at, time.Minute)
		var ended time.Time
		var why error
		c := r.consumer(func(ctx context.Context, _ *Message) error {
			<-ctx.Done()
			ended, why = time.Now(), context.Cause(ctx)
			return why
		}, ConsumerOptions{Dedupe: DedupeNone, MaxMessages: 1, Visibility: 30 * time.Second})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if late := ended.Sub(at); late > queues.Watch || !errors.Is(why, ErrOwnershipLost) {
			t.Errorf("the handler's context ended %v after the machine had woken: %v", late, why)
		}
	})
}

// TestAShortSuspensionIsRenewedAtOnce: what is left of the time is used.
func TestAShortSuspensionIsRenewedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		suspendedFrom(t, time.Now().Add(5*time.Second), 20*time.Second)
		c := r.consumer(func(ctx context.Context, _ *Message) error {
			pass(12 * time.Second)
			return ctx.Err()
		}, ConsumerOptions{Dedupe: DedupeNone, MaxMessages: 1, Visibility: 30 * time.Second})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := r.ops()["Update Message"]; n != 1 || len(r.left(r.queue)) != 0 {
			t.Errorf("%d renewals, %d messages left: %v", n, len(r.left(r.queue)), r.kinds())
		}
	})
}

// TestADeletionAfterASuspensionProvesNothing: the refusal of a deletion was taken for its own success, although another consumer had the
// message by then.
func TestADeletionAfterASuspensionProvesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		suspendedFrom(t, time.Now().Add(500*time.Millisecond), time.Minute)
		r.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 404, Code: "MessageNotFound", Match: aztest.Op("Delete Message")})
		c := r.consumer(func(context.Context, *Message) error { pass(900 * time.Millisecond); return nil },
			ConsumerOptions{Dedupe: DedupeNone, MaxMessages: 1, Visibility: 30 * time.Second})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, k := range r.kinds() {
			if k == observe.Completed {
				t.Errorf("%v", r.kinds())
			}
		}
	})
}
