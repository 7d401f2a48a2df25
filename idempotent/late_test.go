package idempotent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// The marker of a poison message was written without a condition: delivered again, or late, it took back that a copy had
// been handled meanwhile, and the next copy was handled too.
func TestALateMarkerOfPoisonDoesNotTakeBackWhatWasHandled(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.RepeatLater, aztest.CommitAfterBreak} {
		for skip := range 6 {
			inBubble(t, func(t *testing.T, r *rig) {
				p := r.process()
				p.wire.SetFaults(aztest.Fault{Kind: kind, Delay: time.Minute, Match: ofTables, Skip: skip, Count: 1})
				var runs tally
				broken := true
				handle := func(_ context.Context, m *Message) error {
					if broken {
						return Poison(errors.New("broken"))
					}
					runs.add(m.Key)
					return nil
				}
				run := func() {
					r.send("m")
					c, err := NewConsumer(p.queue, handle, &ConsumerOptions{Markers: p.markers, Poison: p.poison, ExitWhenEmpty: true})
					if err != nil {
						t.Fatal(err)
					}
					if err := c.Run(t.Context()); err != nil {
						t.Error(err)
					}
				}
				run()
				broken = false
				run()
				pass(2 * time.Minute)
				p.wire.Flush()
				run()
				if runs.n["m"] != 1 {
					t.Errorf("%s at request %d: handled %d times", kind, skip, runs.n["m"])
				}
			})
		}
	}
}
