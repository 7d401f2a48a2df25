package manual

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestAMessageIsReceivedAndDeletedByHand(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a", "b")
		r.service.Reset()
		began := time.Now()
		got, lost, err := Receive(t.Context(), r.queue, 2, time.Minute, nil)
		if err != nil || lost != 0 || len(got) != 2 || got[0].Deliveries != 1 || got[0].HeldUntil != began.Add(time.Minute) {
			t.Fatalf("%+v, %d, %v", got, lost, err)
		}
		if o, err := Open(got[0].Text, idempotent.Auto); err != nil || o.Key != "a" {
			t.Errorf("%+v, %v", o, err)
		}
		if lost, err := Delete(t.Context(), r.queue, got[0], nil); err != nil || lost != 0 || r.service.Requests() != 2 {
			t.Errorf("%d, %v after %d requests", lost, err, r.service.Requests())
		}
		if _, err := Delete(t.Context(), r.queue, got[0], nil); !errors.Is(err, idempotent.ErrOwnershipLost) || r.service.Requests() != 3 {
			t.Errorf("deleted again: %v after %d requests", err, r.service.Requests())
		}
		if r.left() != 1 {
			t.Errorf("%d left", r.left())
		}
	})
}

func TestAReceiveWhoseResponseIsLostReceivesOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process()
		r.send("a", "b")
		p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Get Messages"), Count: 1})
		got, lost, err := Receive(t.Context(), p.queue, 1, time.Minute, nil)
		if err != nil || lost != 1 || len(got) != 1 {
			t.Fatalf("%+v, %d, %v", got, lost, err)
		}
		if o, _ := Open(got[0].Text, idempotent.Auto); o.Key != "b" {
			t.Errorf("received %+v", o)
		}
		pass(61 * time.Second)
		if got, _, err := Receive(t.Context(), p.queue, 2, time.Minute, nil); err != nil || len(got) != 2 || got[0].Deliveries+got[1].Deliveries != 4 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestAReceiveThatHangsIsSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process()
		r.send("m")
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: time.Hour, Match: aztest.Op("Get Messages"), Count: 1})
		began := time.Now()
		got, lost, err := Receive(t.Context(), p.queue, 1, time.Minute, nil)
		if err != nil || lost != 1 || len(got) != 1 || time.Since(began) > 15*time.Second {
			t.Errorf("%+v, %d, %v after %v", got, lost, err, time.Since(began))
		}
	})
}

// A deletion whose response is lost is proved by the refusal of the next try, for as long as nobody else can have received
// the message.
func TestADeletionWhoseResponseIsLost(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault aztest.FaultKind
		late  bool // the message was received again
		plain bool // the caller does not say until when it holds the message
		want  error
		left  int
	}{
		{name: "was applied", fault: aztest.LoseAnswer},
		{name: "was not applied", fault: aztest.LoseRequest},
		{name: "was applied, and it is not known until when the message is held", fault: aztest.LoseAnswer, plain: true, want: optimistic.ErrOutcomeUnknown},
		{name: "another client has received the message", fault: aztest.LoseAnswer, late: true, want: optimistic.ErrOutcomeUnknown, left: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				p := r.process()
				r.send("m")
				got, _, err := Receive(t.Context(), p.queue, 1, 30*time.Second, nil)
				if err != nil || len(got) != 1 {
					t.Fatal(got, err)
				}
				if tt.late {
					pass(31 * time.Second)
					r.receiveAndDie(1, 30*time.Second)
				}
				if tt.plain {
					got[0].HeldUntil = time.Time{}
				}
				p.wire.SetFaults(aztest.Fault{Kind: tt.fault, Match: aztest.Op("Delete Message"), Count: 1})
				r.service.Reset()
				lost, err := Delete(t.Context(), p.queue, got[0], nil)
				if !errors.Is(err, tt.want) || lost != 1 || r.left() != tt.left {
					t.Errorf("%d, %v, %d left", lost, err, r.left())
				}
			})
		})
	}
}

func TestWhatIsReceivedOrDeletedByHandIsChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		for _, visibility := range []time.Duration{0, 1500 * time.Millisecond, 8 * 24 * time.Hour} {
			if _, _, err := Receive(ctx, r.queue, 1, visibility, nil); err == nil {
				t.Errorf("hidden for %v", visibility)
			}
		}
		for _, n := range []int{0, 33} {
			if _, _, err := Receive(ctx, r.queue, n, time.Second, nil); err == nil {
				t.Errorf("%d received", n)
			}
		}
		if _, err := Delete(ctx, r.queue, Delivery{MessageID: "x"}, nil); err == nil {
			t.Error("deleted without a receipt")
		}
		if n := r.service.Requests(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}
