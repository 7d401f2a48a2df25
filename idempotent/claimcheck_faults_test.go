//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package idempotent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// settling are the modes that differ in how a message is settled, which is when its body goes.
var settling = slices.DeleteFunc(slices.Clone(modes), func(m mode) bool { return !slices.Contains([]string{"nothing", "markers", "results", "inbox"}, m.name) })

// TestEveryFaultAtEveryRequestOfAClaimedMessage breaks one request, from the sending to the deletion of the body, each in
// turn, in each way.
func TestEveryFaultAtEveryRequestOfAClaimedMessage(t *testing.T) {
	body := noise(70_000)
	faults := map[string]aztest.Fault{
		"not sent":      {Kind: aztest.LoseRequest},
		"answer lost":   {Kind: aztest.LoseAnswer},
		"answer cut":    {Kind: aztest.CutAnswer},
		"503":           {Kind: aztest.Throttle},
		"500 after all": {Kind: aztest.FailAfterCommit},
		"twice":         {Kind: aztest.AnswerTwice},
		"hangs":         {Kind: aztest.Hang, Delay: 20 * time.Second},
	}
	for _, m := range settling {
		for name, fault := range faults {
			for k := range 12 {
				if testing.Short() && (k+len(name)+len(m.name))%5 > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", m.name, name, k), func(t *testing.T) {
					inClaimBubble(t, func(t *testing.T, r *rig, _ *ClaimCheck) {
						var effects tally
						p := r.process()
						claims := r.claims(p.wire)
						fault.Skip, fault.Count = k, 1
						p.wire.SetFaults(fault)
						producer, err := NewProducer(p.queue, &ProducerOptions{ClaimCheck: claims})
						if err != nil {
							t.Fatal(err)
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						if _, err := producer.Send(ctx, Outgoing{ID: "m", Body: body}); err != nil {
							if name != "hangs" { // until ctx ends
								t.Fatal(err)
							}
							if _, err := producer.Send(t.Context(), Outgoing{ID: "m", Body: body}); err != nil {
								t.Fatal(err)
							}
						}
						copies := len(r.left(r.queue))
						p.consume(m, &effects, ConsumerOptions{MaxAttempts: -1, ClaimCheck: claims}, func() bool { return len(r.left(r.queue)) == 0 })
						if n := m.count(r, &effects, "m"); n < 1 || n > m.most {
							t.Errorf("%d effects, want 1 to %d:\n%v", n, m.most, p.wire.Log())
						}
						if left := len(r.left(r.queue)); left != 0 {
							t.Errorf("%d messages left", left)
						}
						// A copy is known by its marker; without, it may come when the body is gone.
						buried := len(r.buried())
						if spare := copies - 1; buried > spare || m.knowsCopies() && buried != 0 {
							t.Errorf("%d of %d copies buried:\n%v", buried, copies, p.wire.Log())
						}
						if b := r.blobs(); len(b) != 0 && name != "hangs" {
							t.Errorf("left behind: %q\n%v", b, p.wire.Log())
						}
					})
				})
			}
		}
	}
}

// TestAProcessThatDiesAtAnyRequestOfAClaimedMessageLosesNothing cuts all connections from the k-th request on.
func TestAProcessThatDiesAtAnyRequestOfAClaimedMessageLosesNothing(t *testing.T) {
	body := noise(70_000)
	for _, m := range settling {
		for _, after := range []bool{false, true} {
			for k := range 9 {
				if testing.Short() && (k+len(m.name))%2 > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%d", m.name, after, k), func(t *testing.T) {
					inClaimBubble(t, func(t *testing.T, r *rig, claims *ClaimCheck) {
						r.sendBody(claims, "m", body)
						var effects tally
						dying := r.process()
						cut := []aztest.Fault{{Kind: aztest.LoseRequest, Skip: k}}
						if after {
							cut = []aztest.Fault{{Kind: aztest.LoseAnswer, Skip: k, Count: 1}, {Kind: aztest.LoseRequest, Skip: k}}
						}
						dying.wire.SetFaults(cut...)
						died := 0
						dying.consume(m, &effects, ConsumerOptions{MaxAttempts: -1, ClaimCheck: r.claims(dying.wire)}, func() bool { died++; return died > 15 })
						next := r.process()
						next.consume(m, &effects, ConsumerOptions{MaxAttempts: -1, ClaimCheck: r.claims(next.wire)}, func() bool { return len(r.left(r.queue)) == 0 })
						if n := m.count(r, &effects, "m"); n < 1 || n > m.most {
							t.Errorf("%d effects, want 1 to %d:\n%v\n%v", n, m.most, dying.wire.Log(), next.wire.Log())
						}
						if left, buried := len(r.left(r.queue)), len(r.buried()); left+buried != 0 {
							t.Errorf("%d messages left, %d buried", left, buried)
						}
						// A process that died between the two deletions leaves the body.
						deleted := slices.ContainsFunc(dying.wire.Log(), func(q aztest.Request) bool { return q.Op == "Delete Blob" })
						if b := r.blobs(); len(b) != 0 && !deleted {
							t.Errorf("left behind: %q\n%v\n%v", b, dying.wire.Log(), next.wire.Log())
						}
					})
				})
			}
		}
	}
}

// TestABodyIsNeverDeletedBeforeItsMessage looks at the order of the requests, under concurrency.
func TestABodyIsNeverDeletedBeforeItsMessage(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		const n = 40
		for i := range n {
			r.sendBody(k, fmt.Sprint(i), noise(66_000+i))
		}
		r.service.Reset()
		var mu sync.Mutex
		bodies := 0
		r.consume(func(_ context.Context, m *Message) error {
			mu.Lock()
			defer mu.Unlock()
			bodies += len(m.Body)
			return nil
		}, ConsumerOptions{ClaimCheck: k, Markers: r.markers})
		messages, blobs := 0, 0
		for _, q := range r.service.Log() {
			switch q.Op {
			case "Delete Message":
				messages++
			case "Delete Blob":
				if blobs++; blobs > messages {
					t.Fatalf("body %d is deleted when %d messages are", blobs, messages)
				}
			}
		}
		if blobs != n || messages != n || len(r.blobs()) != 0 || bodies != 66_000*n+n*(n-1)/2 {
			t.Errorf("%d messages and %d bodies deleted, %d bytes", messages, blobs, bodies)
		}
	})
}
