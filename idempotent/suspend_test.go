package idempotent

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
)

// suspendedFrom has the machine suspended at each of some times, for so long: the wall clock advances, and timers stand still.
func suspendedFrom(t *testing.T, d time.Duration, at ...time.Time) {
	clock.Jumped = func() (all time.Duration) {
		for _, at := range at {
			if !time.Now().Before(at) {
				all += d
			}
		}
		return all
	}
	t.Cleanup(func() { clock.Jumped = nil })
}

// TestAHandlerEndsWithinASecondOfASuspension: a machine that slept through the visibility timeout woke with a handler that worked on for
// two thirds of it, while another consumer handled the message.
func TestAHandlerEndsWithinASecondOfASuspension(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		at := time.Now().Add(5 * time.Second)
		suspendedFrom(t, time.Minute, at)
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
		if late := ended.Sub(at); late > clock.Watch || !errors.Is(why, ErrOwnershipLost) {
			t.Errorf("the handler's context ended %v after the machine had woken: %v", late, why)
		}
	})
}

// TestAShortSuspensionIsRenewedAtOnce: what is left of the time is used.
func TestAShortSuspensionIsRenewedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		suspendedFrom(t, 20*time.Second, time.Now().Add(5*time.Second))
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
		suspendedFrom(t, time.Minute, time.Now().Add(500*time.Millisecond))
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

// TestAClaimIsRenewedAcrossSuspensions: the message was renewed after each of them, and its claim was not, so that a copy was handled
// beside it.
func TestAClaimIsRenewedAcrossSuspensions(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		began := time.Now()
		suspendedFrom(t, 200*time.Second, began.Add(10*time.Second), began.Add(20*time.Second), began.Add(30*time.Second))
		c := r.consumer(func(ctx context.Context, m *Message) error {
			pass(time.Minute)
			claim, _, err := markers.Find(ctx, r.markers.table.Entity(markers.PartitionOf(m.Queue, m.Key), markers.RowOf(m.Key)), r.markers.table.Reading())
			if now := time.Now().Add(600 * time.Second); err != nil || claim.Until.Before(now) {
				t.Errorf("the claim ends at %v, and it is %v: %v", claim.Until, now, err)
			}
			return ctx.Err()
		}, ConsumerOptions{Markers: r.markers, MaxMessages: 1, Visibility: 4 * time.Minute})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestACopyIsPutBackBeforeItReturnsByItself: a copy that waits for its original is not renewed. After a suspension it was kept for as long as
// before, so that it could come to another consumer meanwhile.
func TestACopyIsPutBackBeforeItReturnsByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m", "m")
		suspendedFrom(t, 22*time.Second, time.Now().Add(5*time.Second))
		r.consume(func(ctx context.Context, _ *Message) error {
			pass(15 * time.Second)
			if !slices.Contains(r.kinds(), observe.Returned) {
				t.Error("the copy waits for its original")
			}
			return ctx.Err()
		}, ConsumerOptions{Markers: r.markers, Visibility: 30 * time.Second})
	})
}

// TestNoMessageIsPutBackForLongerThanItLivesAfterASuspension: the service refuses that, and the count of its attempts was lost.
func TestNoMessageIsPutBackForLongerThanItLivesAfterASuspension(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p, err := NewProducer(r.queue, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Send(t.Context(), Outgoing{Body: []byte("m"), TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		suspendedFrom(t, 20*time.Second, time.Now().Add(time.Second))
		c := r.consumer(func(context.Context, *Message) error {
			pass(3 * time.Second)
			return RetryAfter(errors.New("later"), 50*time.Second)
		}, ConsumerOptions{Dedupe: DedupeNone, MaxMessages: 1, Visibility: 30 * time.Second})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := r.service.Log()
		if last := log[len(log)-1]; last.Op != "Update Message" || last.Query.Get("visibilitytimeout") != "35" {
			t.Errorf("%s of %v, want 35 s", last.Op, last.Query)
		}
	})
}
