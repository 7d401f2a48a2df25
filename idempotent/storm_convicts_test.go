//go:build !race

// The judge of the storms is one goroutine, in which the race detector has nothing to find and takes ten times as long.

package idempotent

import (
	"context"
	"testing"
	"testing/synctest"
)

// early takes a claim for the proof that a message was handled.
type early struct{ deduper }

func (e early) decide(ctx context.Context, batch []*delivery) error {
	err := e.deduper.decide(ctx, batch)
	for _, d := range batch {
		if d.fate == busy || d.fate == run && d.m.Deliveries > 1 {
			d.fate = finished
		}
	}
	return err
}

// forgetful never learns that a message was handled.
type forgetful struct{ deduper }

func (f forgetful) conclude(context.Context, *delivery, conclusion) error { return nil }

// TestAStormConvicts shows that the judge finds what is wrong with a consumer.
func TestAStormConvicts(t *testing.T) {
	for name, plant := range map[string]func(deduper) deduper{
		"early":     func(d deduper) deduper { return early{d} },
		"forgetful": func(d deduper) deduper { return forgetful{d} },
	} {
		t.Run(name, func(t *testing.T) {
			found := 0
			for seed := uint64(1); seed <= 8 && found == 0; seed++ {
				synctest.Test(t, func(t *testing.T) {
					s := newStorm(t, modes[1], seed)
					s.plant = plant
					s.rage(50)
					s.calm()
					lost, wrong := s.judge(func(string, ...any) {})
					found += lost + wrong
				})
			}
			if found == 0 {
				t.Error("no storm has noticed")
			}
		})
	}
}
