package idempotent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// A truncated response that the SDK could not parse used to end the Consumer, and made the Producer report a failure
// for a message that was sent.
func TestATruncatedResponseIsALostResponse(t *testing.T) {
	for _, op := range []string{"Put Message", "Get Messages", "Query Entities", "Entity Group Transaction"} {
		t.Run(op, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.service.SetFaults(aztest.Fault{Kind: aztest.Truncate, Match: aztest.Op(op), Count: 1})
				r.send("a", "b")
				var done tally
				r.consume(func(ctx context.Context, m *Message) error {
					done.add(m.Key)
					return r.inbox.Apply(ctx, m, "p", func(ctx context.Context, tx *tables.Tx) error {
						var e effect
						if _, err := tx.Get(ctx, "effect-"+m.Key, &e); err != nil {
							return err
						}
						return tx.Put("effect-"+m.Key, effect{e.N + 1})
					})
				}, ConsumerOptions{Markers: r.markers})
				met := 0
				for _, q := range r.service.Log() {
					if q.Fault == aztest.Truncate {
						met++
					}
				}
				if met != 1 {
					t.Errorf("%d responses were truncated, want 1", met)
				}
				for _, key := range []string{"a", "b"} {
					if n := r.applied(key); n != 1 {
						t.Errorf("the effect of %s was applied %d times; it was handled %d times", key, n, done.n[key])
					}
				}
			})
		})
	}
}

// A refused claim whose response an intermediary had truncated looked like a claim, and the copy was handled as well.
func TestATruncatedRefusalIsNoClaim(t *testing.T) {
	for _, n := range []int{1, 2, 5} { // messages per claim: the refusal comes earlier or later in the response
		inBubble(t, func(t *testing.T, r *rig) {
			var keys []string
			for i := range n {
				keys = append(keys, string(rune('a'+i)))
			}
			r.send(keys...)
			var runs tally
			handle := func(_ context.Context, m *Message) error { runs.add(m.Key); return nil }
			r.consume(handle, ConsumerOptions{Markers: r.markers})
			r.send(keys...)
			p := r.process()
			p.wire.SetFaults(aztest.Fault{Kind: aztest.Truncate, Match: aztest.Op("Entity Group Transaction"), Count: 1})
			c, err := NewConsumer(p.queue, handle, &ConsumerOptions{Markers: p.markers, ExitWhenEmpty: true, Poll: pollEvery(time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Run(t.Context()); err != nil {
				t.Error(err)
			}
			pass(time.Minute)
			for _, key := range keys {
				if runs.n[key] != 1 {
					t.Errorf("of %d: %s was handled %d times", n, key, runs.n[key])
				}
			}
		})
	}
}

// A success without the list of the messages was taken for an empty queue, and a run until the queue is empty ended with work left.
func TestASuccessWithoutAListIsNoEmptyQueue(t *testing.T) {
	for _, tt := range []struct {
		body, want string
		header     http.Header
	}{
		{"", "no list of messages", http.Header{"X-Ms-Request-Id": {"1"}}},
		{"<html><body>sign in</body></html>", "no list of messages", http.Header{"X-Ms-Request-Id": {"1"}, "Content-Type": {"text/html"}}},
		{"<html><body>sign in</body></html>", "did not come from Azure Storage", http.Header{"Content-Type": {"text/html"}}},
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.send("m")
			answered := 0
			queue := r.client("orders", respondent{r.service, http.MethodGet, func(q *http.Request) (*http.Response, error) {
				if answered++; answered > 2 {
					return r.service.Do(q)
				}
				return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Request: q, Header: tt.header, Body: io.NopCloser(strings.NewReader(tt.body))}, nil
			}})
			var failures []string
			handled := 0
			c, err := NewConsumer(queue, func(context.Context, *Message) error { handled++; return nil }, &ConsumerOptions{Dedupe: DedupeNone, ExitWhenEmpty: true,
				Hooks: observe.Hooks{Event: func(_ context.Context, e observe.Event) {
					if e.Kind == observe.Failed {
						failures = append(failures, fmt.Sprint(e.Err))
					}
				}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Run(t.Context()); err != nil || handled != 1 || len(failures) != 2 || !strings.Contains(failures[0], tt.want) {
				t.Errorf("%q: %v, %d handled, %q", tt.body, err, handled, failures)
			}
		})
	}
}
