//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package idempotent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// stubborn runs two consumers of one message. The renewals of the first one's fail, and its handler goes on regardless.
func stubborn(t *testing.T, as Encoding, deafened bool, faults ...aztest.Fault) (effects int) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		r.sendAs(as, "m")
		var runs tally
		work := func(_ context.Context, _ *Message) error {
			runs.add("m")
			pass(50 * time.Second)
			return nil
		}
		first := r.process()
		wire := []aztest.Fault{{Kind: aztest.LoseRequest, Match: aztest.Op("Update Message")}}
		if deafened {
			wire = append(wire, deaf())
		}
		first.wire.SetFaults(wire...)
		o := ConsumerOptions{MaxDeliveries: 2, MaxAttempts: 2}
		a := r.join(first, work, nil, o)
		pass(8 * time.Second)
		second := r.process()
		second.wire.SetFaults(faults...)
		b := r.join(second, work, nil, o)
		r.untilEmpty(20 * time.Minute)
		pass(10 * time.Second)
		if err := errors.Join(a.leave(), b.leave()); err != nil {
			t.Error(err)
		}
		if left, buried := len(r.left(r.queue)), len(r.buried()); left+buried != 0 {
			t.Errorf("%d left, %d buried:\n%v\n%v", left, buried, first.wire.Log(), second.wire.Log())
		}
		kinds, texts := b.kinds(observe.Failed)
		if len(faults) == 0 && len(texts) != 0 || deafened && !slices.Contains(kinds, observe.Returned) {
			t.Errorf("%v %q", kinds, texts)
		}
		if alive := r.alive(); alive != 0 {
			t.Errorf("%d sessions are left", alive)
		}
		effects = runs.n["m"]
	})
	return effects
}

func TestAHandlerThatGoesOnIsWaitedForAndItsMessageIsHandledOnce(t *testing.T) {
	for _, as := range []Encoding{Envelope, Base64} {
		for _, deafened := range []bool{false, true} {
			if n := stubborn(t, as, deafened); n != 1 {
				t.Errorf("%s, %v: handled %d times", as, deafened, n)
			}
		}
	}
}

// TestEveryFaultAtEveryRequestOfOneThatWaits breaks one request of the second consumer, each in turn, in each way: what the
// first has in its hands stays there.
func TestEveryFaultAtEveryRequestOfOneThatWaits(t *testing.T) {
	for name, fault := range sessionFaults {
		for k := range 16 {
			t.Run(fmt.Sprintf("%s/%d", name, k), func(t *testing.T) {
				fault.Skip, fault.Count = k, 1
				if n := stubborn(t, Envelope, true, fault); n != 1 {
					t.Errorf("handled %d times", n)
				}
			})
		}
	}
}

var sessionFaults = map[string]aztest.Fault{
	"not sent":      {Kind: aztest.LoseRequest},
	"answer lost":   {Kind: aztest.LoseAnswer},
	"503":           {Kind: aztest.Throttle},
	"500 after all": {Kind: aztest.FailAfterCommit},
	"twice":         {Kind: aztest.AnswerTwice},
	"hangs":         {Kind: aztest.Hang},
}

// TestEveryFaultAtEveryRequestOfATakeover breaks one request of the consumer that takes over from one whose process has crashed.
func TestEveryFaultAtEveryRequestOfATakeover(t *testing.T) {
	for name, fault := range sessionFaults {
		for k := range 24 {
			t.Run(fmt.Sprintf("%s/%d", name, k), func(t *testing.T) {
				inSessionBubble(t, func(t *testing.T, r *rig) {
					r.send("m")
					o := &SessionsOptions{Duration: 15 * time.Second}
					first := r.process()
					a := r.join(first, func(ctx context.Context, _ *Message) error { <-ctx.Done(); return ctx.Err() }, o, ConsumerOptions{})
					pass(2 * time.Second)
					first.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest})
					pass(10 * time.Second)
					second := r.process()
					fault.Skip, fault.Count = k, 1
					second.wire.SetFaults(fault)
					runs := 0
					b := r.join(second, func(context.Context, *Message) error { runs++; return nil }, o, ConsumerOptions{MaxDeliveries: 2})
					r.untilEmpty(5 * time.Minute)
					if err := b.leave(); err != nil || len(r.left(r.queue)) != 0 || runs < 1 || runs > 2 {
						t.Errorf("%v, %d left, %d runs:\n%v", err, len(r.left(r.queue)), runs, second.wire.Log())
					}
					_ = a.leave()
					pass(time.Hour)
				})
			})
		}
	}
}

// TestEveryFaultAtEveryRequestOfASession breaks one request of a session's life, each in turn, in each way.
func TestEveryFaultAtEveryRequestOfASession(t *testing.T) {
	for name, fault := range sessionFaults {
		for k := range 7 {
			t.Run(fmt.Sprintf("%s/%d", name, k), func(t *testing.T) {
				inSessionBubble(t, func(t *testing.T, r *rig) {
					p := r.process()
					fault.Skip, fault.Count = k, 1
					fault.Match = func(q *aztest.Request) bool { return strings.HasPrefix(q.Resource, "sessions/") }
					p.wire.SetFaults(fault)
					a := r.join(p, func(context.Context, *Message) error { return nil }, nil, ConsumerOptions{})
					pass(75 * time.Second)
					if r.alive() != 1 {
						t.Errorf("%d sessions", r.alive())
					}
					r.send("m")
					r.untilEmpty(time.Minute)
					if err := a.leave(); err != nil || len(r.left(r.queue)) != 0 {
						t.Errorf("%v, %d left", err, len(r.left(r.queue)))
					}
					if left := r.leased(); len(left) != 0 && name != "hangs" {
						t.Errorf("left behind: %v\n%v", left, p.wire.Log())
					}
				})
			})
		}
	}
}
