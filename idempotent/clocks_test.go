package idempotent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/clock"
)

// Between its copy in the poison queue and its deletion, a message is marked: a crash after a deletion that came first would leave a
// marker that claims the key for a message that is gone.
func TestAPoisonMessageIsMarkedBeforeItIsDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		r.service.Reset()
		r.consume(func(context.Context, *Message) error { return Poison(errors.New("broken")) }, ConsumerOptions{Markers: r.markers, Poison: r.poison})
		var order []string
		for _, q := range r.service.Log() {
			written := strings.Contains(q.Op, "Entit") && q.Method != "GET"
			switch {
			case written:
				order = append(order, "marked")
			case q.Op == "Put Message", q.Op == "Delete Message":
				order = append(order, q.Op)
			}
		}
		if want := []string{"marked", "Put Message", "marked", "Delete Message"}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
	})
}

// Whether a claim has ended is judged by the queue's clock, which all consumers share, and not by this machine's, which may be hours
// wrong.
func TestAClaimEndsByTheQueuesClock(t *testing.T) {
	for name, tt := range map[string]struct {
		queue, until time.Duration // from the local clock
		want         decision
	}{
		"the local clock is ahead":  {-2 * time.Hour, -time.Hour, busy},
		"the local clock is behind": {2 * time.Hour, time.Hour, run},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				now := time.Now()
				c := r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: r.markers})
				o := c.dedupe.(*owner)
				other := markers.Marker{Owner: "another", State: markers.Owned, Expires: now.Add(100 * time.Hour), Until: now.Add(tt.until)}
				if err := r.markers.note(t.Context(), c.queue.Path, "k", other); err != nil {
					t.Fatal(err)
				}
				d := &delivery{c: c, m: &Message{ID: "this", Key: "k", Expires: now.Add(100 * time.Hour)},
					arrival: arrival{e: format.Message{As: format.Envelope}, carries: true, received: clock.Of(now), at: now.Add(tt.queue)},
					mark:    mark{partition: markers.PartitionOf(c.queue.Path, "k"), row: markers.RowOf("k")}}
				if err := o.consult(t.Context(), d); err != nil || d.fate != tt.want {
					t.Errorf("fate %d, %v, want %d", d.fate, err, tt.want)
				}
			})
		})
	}
}

// The time of a claim is counted from before the message was received: how long the claim took is a part of it.
func TestAClaimIsCountedFromTheReceive(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: r.markers})
		o, received, at := c.dedupe.(*owner), clock.Now(), time.Now().Add(time.Hour)
		d := &delivery{c: c, m: &Message{ID: "m"}, arrival: arrival{carries: true, received: received, at: at}}
		pass(4 * time.Minute)
		o.claimed(d, at.Add(5*time.Minute))
		if left := d.claim.until.Left(); left != time.Minute {
			t.Errorf("%v are left, want 1m", left)
		}
	})
}

// A handler whose claim cannot be renewed went on until the first renewal of its message after the claim had ended, when a copy may be
// handled.
func TestAHandlerEndsBeforeAClaimThatCannotBeRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process()
		r.send("m")
		var held time.Duration
		var cause error
		c, err := NewConsumer(p.queue, func(ctx context.Context, _ *Message) error {
			began := time.Now()
			p.wire.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: ofTables})
			<-ctx.Done()
			held, cause = time.Since(began), context.Cause(ctx)
			p.wire.SetFaults()
			return cause
		}, &ConsumerOptions{Markers: p.markers, MaxMessages: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if !errors.Is(cause, ErrOwnershipLost) || held >= leastClaim || held < leastClaim-time.Minute {
			t.Errorf("ended after %v, and the claim after %v: %v", held, leastClaim, cause)
		}
	})
}

// The counts of a message that cannot carry them are in its marker. A consumer that was suspended does not change those of the one that
// has received the message since.
func TestOnlyTheLatestHolderCountsInTheMarker(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.queue.EnqueueMessage(t.Context(), "plain", nil); err != nil {
			t.Fatal(err)
		}
		c := r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: r.markers})
		receive := func() *delivery {
			batch, err := c.receive(t.Context(), 1)
			if err != nil || len(batch) != 1 || c.dedupe.decide(t.Context(), batch) != nil || batch[0].fate != run {
				t.Fatal(batch, err)
			}
			delete(c.inFlight, batch[0].m.ID)
			delete(c.keys, batch[0].m.Key)
			return batch[0]
		}
		early := receive()
		pass(c.o.Visibility + time.Second)
		late := receive()
		early.e.Excused, late.e.Excused = 7, 1
		for d, want := range map[*delivery]int{early: 0, late: 1} {
			if err := c.dedupe.forget(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			m, there, err := markers.Find(t.Context(), r.markers.table.Entity(d.partition, d.row), r.markers.table.Reading())
			if !there || err != nil || m.Excused == 7 || d == late && m.Excused != want {
				t.Errorf("%+v, %v, %v", m, there, err)
			}
		}
	})
}
