package idempotent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAQuarterOfASecondOfABadNetworkEndsNoConsumer: the write that claims a key again was applied and its answer lost, the second try
// got 412, and both looks at what had become of it were lost. Of the unknown outcome, the 412 in its chain was taken for an answer that
// will not change, and Run returned it.
func TestAQuarterOfASecondOfABadNetworkEndsNoConsumer(t *testing.T) {
	lost := map[string]aztest.FaultKind{"lost": aztest.LoseAnswer, "500": aztest.FailAfterCommit}
	for name, kind := range lost {
		for first := range 5 {
			for i, pattern := range []string{"x.xx", "x.xxx", "x.xxxx", "x.x", "xx.xx", "xxxx"} {
				if testing.Short() && (i+first)%3 > 0 {
					continue
				}
				t.Run(fmt.Sprint(name, "/", first, "/", pattern), func(t *testing.T) {
					inBubble(t, func(t *testing.T, r *rig) {
						r.send("m")
						o := ConsumerOptions{Markers: r.markers, Dedupe: DedupeOwner, Poison: r.poison}
						r.consume(func(context.Context, *Message) error { return Poison(errors.New("later")) }, o)
						if _, err := redrive.Run(t.Context(), r.poison, r.queue, nil); err != nil {
							t.Fatal(err)
						}
						p := r.process()
						n := -first - 1
						p.wire.SetFaults(aztest.Fault{Kind: kind, Match: func(q *aztest.Request) bool {
							if !strings.Contains(q.Op, "Entit") {
								return false
							}
							n++
							return n >= 0 && n < len(pattern) && pattern[n] == 'x'
						}})
						runs := 0
						c, err := NewConsumer(p.queue, func(context.Context, *Message) error { runs++; return nil },
							&ConsumerOptions{Markers: p.markers, Dedupe: DedupeOwner, Poison: p.poison, Poll: pollEvery(time.Second)})
						if err != nil {
							t.Fatal(err)
						}
						ctx, cancel := context.WithCancel(t.Context())
						ended := make(chan error, 1)
						go func() { ended <- c.Run(ctx) }()
						pass(3 * time.Minute)
						cancel()
						if err := <-ended; err != nil || runs != 1 || len(r.left(r.queue)) != 0 || len(r.buried()) != 0 {
							t.Errorf("%v, %d runs, %d left:\n%v", err, runs, len(r.left(r.queue)), p.wire.Log())
						}
					})
				})
			}
		}
	}
}
