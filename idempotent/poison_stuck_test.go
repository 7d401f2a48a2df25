//go:build !race

package idempotent

// With the race detector this takes ten times as long, and finds no more: scripts/test runs it without.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

// A message that could not be buried was handled again each time it came: 26 times with MaxAttempts 5.
func TestAMessageThatCannotBeBuriedIsNotHandledAgain(t *testing.T) {
	for _, m := range modes {
		for _, as := range []Encoding{Envelope, Base64} {
			for _, f := range []aztest.Fault{{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch"}, {Kind: aztest.Refuse}} {
				if testing.Short() && (as == Envelope) != (f.Kind == aztest.Answer) {
					continue
				}
				t.Run(fmt.Sprint(m.name, "/", as, "/", f.Kind), func(t *testing.T) {
					inBubble(t, func(t *testing.T, r *rig) {
						p, err := NewProducer(r.queue, &ProducerOptions{Encoding: as})
						if err != nil {
							t.Fatal(err)
						}
						if _, err := p.Send(t.Context(), Outgoing{ID: "m", Body: []byte("hello")}); err != nil {
							t.Fatal(err)
						}
						there := r.process()
						f.Match = func(q *aztest.Request) bool { return strings.HasPrefix(q.Resource, "orders-poison") }
						there.wire.SetFaults(f)
						var handled atomic.Int32
						o := ConsumerOptions{Markers: r.markers, Dedupe: m.dedupe, Poison: there.poison, Backoff: retry.Backoff{Base: time.Second, Cap: 5 * time.Minute}, Poll: pollEvery(time.Minute)}
						c := r.consumer(func(context.Context, *Message) error { handled.Add(1); return errors.New("no such order") }, o)
						ctx, cancel := context.WithCancel(t.Context())
						ended := make(chan error, 1)
						go func() { ended <- c.Run(ctx) }()
						pass(time.Hour)
						if runs := handled.Load(); runs != 5 || len(r.left(r.queue)) != 1 {
							t.Errorf("%d runs, %d left", runs, len(r.left(r.queue)))
						}
						there.wire.SetFaults()
						pass(time.Hour)
						cancel()
						err = <-ended
						if runs := handled.Load(); err != nil || runs != 5 || len(r.left(r.queue)) != 0 || len(r.left(r.poison)) != 1 {
							t.Errorf("%v, %d runs, %d left, %d poison", err, runs, len(r.left(r.queue)), len(r.left(r.poison)))
						}
						if b := r.buried(); as == Envelope && b[0].Poison.Reason != "failed 5 times: no such order" {
							t.Errorf("buried as %+v", b[0].Poison)
						}
					})
				})
			}
		}
	}
}
