package idempotent

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/aztest"
)

// lateAnswers delivers the responses to requests that match late: the service has applied them long before.
type lateAnswers struct {
	policy.Transporter
	match func(*http.Request) bool
	late  time.Duration
}

func (l *lateAnswers) Do(r *http.Request) (*http.Response, error) {
	resp, err := l.Transporter.Do(r)
	if err == nil && l.match(r) {
		pass(l.late)
	}
	return resp, err
}

// The service counts the time for which a message is hidden from when it has received the request. A consumer that counted from
// the response would let its handler go on while another consumer has the message.
func TestTheTimeOfAMessageIsCountedFromTheRequest(t *testing.T) {
	const visibility, late = 9 * time.Second, 1500 * time.Millisecond
	for _, tt := range []struct {
		name   string
		method string
		op     string        // the request that is answered late
		skip   int           // renewals that succeed
		until  time.Duration // from the receive on
	}{
		{"receive", http.MethodGet, "Get Messages", 0, visibility},
		{"renewal", http.MethodPut, "Update Message", 1, visibility*2/3 + visibility},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				p := r.process()
				r.send("m")
				p.wire.SetFaults(aztest.Fault{Kind: aztest.Refuse, Match: aztest.Op("Update Message"), Skip: tt.skip})
				queue := r.client("orders", &lateAnswers{p.wire, func(r *http.Request) bool { return r.Method == tt.method }, late})
				var ended time.Time
				var cause error
				c, err := NewConsumer(queue, func(ctx context.Context, _ *Message) error {
					<-ctx.Done()
					ended, cause = time.Now(), context.Cause(ctx)
					return cause
				}, &ConsumerOptions{Dedupe: DedupeNone, Visibility: visibility, MaxMessages: 1})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if held := ended.Sub(began); !errors.Is(cause, ErrOwnershipLost) || held > tt.until || held < tt.until-2*time.Second {
					t.Errorf("the handler's context has ended after %v, and others can receive the message after %v: %v", held, tt.until, cause)
				}
			})
		})
	}
}

// While the table of the markers hung, the renewal of the claim kept the message from being renewed: it was received and handled by
// another consumer, beside the handler of the first.
func TestATableThatHangsDoesNotKeepAMessageFromBeingRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		first, second := r.process(), r.process()
		var m meter
		handle := m.handler(4*time.Minute, func() { first.wire.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: ofTables}) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for _, p := range []*process{first, second} {
			c, err := NewConsumer(p.queue, handle, &ConsumerOptions{Markers: p.markers, Visibility: 3 * time.Second, Poll: pollEvery(time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if err := c.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			pass(time.Minute)
		}
		all.Wait()
		if m.most != 1 || m.runs != 1 || len(r.left(r.queue)) != 0 {
			t.Errorf("%d runs, up to %d at a time, %d left", m.runs, m.most, len(r.left(r.queue)))
		}
	})
}

// A renewal that had failed was tried again for less than half a second, although the message was hidden for two more: an outage of three
// seconds ended it, and another consumer handled the message again, before what it had done was recorded, or beside its handler.
func TestARenewalIsTriedUntilTheMessageIsLost(t *testing.T) {
	const visibility, outage, back = 10 * time.Second, 6600 * time.Millisecond, 9700 * time.Millisecond
	for _, tt := range []struct {
		name   string
		dedupe Dedupe
		takes  time.Duration
		obeys  bool // the handler returns when its context ends
		ended  bool // its context
		runs   int
	}{
		{"handled before the end of the outage", DedupeOwner, 8 * time.Second, false, false, 1},
		{"handled after the handler was to end", DedupeNone, 15 * time.Second, false, true, 1},
		{"not handled in time", DedupeNone, 15 * time.Second, true, true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 8 { // pauses are random
				inBubble(t, func(t *testing.T, r *rig) {
					r.send("m")
					first, second := r.process(), r.process()
					var m meter
					run := m.handler(tt.takes, func() {})
					began := time.Now()
					var cause error // of the end of the first handler's context
					var again time.Duration
					handle := func(ctx context.Context, msg *Message) error {
						m.mu.Lock()
						first := m.runs == 0
						m.mu.Unlock()
						if !first {
							again = time.Since(began)
							return run(ctx, msg)
						}
						within := ctx
						if !tt.obeys {
							within = context.WithoutCancel(ctx)
						}
						defer func() { cause = context.Cause(ctx) }()
						return run(within, msg)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
					defer cancel()
					var all sync.WaitGroup
					for _, p := range []*process{first, second} {
						c, err := NewConsumer(p.queue, handle, &ConsumerOptions{Dedupe: tt.dedupe, Markers: p.markers, Visibility: visibility, Poll: pollEvery(200 * time.Millisecond)})
						if err != nil {
							t.Fatal(err)
						}
						all.Go(func() {
							if err := c.Run(ctx); err != nil {
								t.Error(err)
							}
						})
						if p == first {
							pass(outage)
							first.wire.SetFaults(aztest.Fault{Kind: aztest.Refuse})
						}
					}
					pass(back - outage)
					first.wire.SetFaults()
					all.Wait()
					if m.runs != tt.runs || m.most > 1 || len(r.left(r.queue)) != 0 || errors.Is(cause, ErrOwnershipLost) != tt.ended || again > 11*time.Second {
						t.Errorf("%d runs, up to %d at a time, the second after %v, %d left, the first handler's context: %v", m.runs, m.most, again, len(r.left(r.queue)), cause)
					}
				})
			}
		})
	}
}
