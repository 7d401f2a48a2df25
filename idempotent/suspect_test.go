package idempotent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/aztest"
)

// killed runs a consumer in a process that ends as soon as the handler of "killer" has started, again and again.
func (r *rig) killed(times int, as Encoding, o ConsumerOptions, handled func(key string)) {
	for range times {
		p := r.process()
		ctx, cancel := context.WithCancel(context.Background())
		var once sync.Once
		o := withoutMarkers(o)
		if o.Markers != nil {
			o.Markers = p.markers
		}
		o.Poison, o.Visibility, o.SoftStop, o.HardStop, o.Poll = p.poison, 5*time.Second, time.Nanosecond, time.Nanosecond, pollEvery(time.Second)
		c, err := NewConsumer(p.queue, func(ctx context.Context, m *Message) error {
			if strings.HasPrefix(string(m.Body), "killer") {
				once.Do(func() {
					p.wire.SetFaults(aztest.Fault{Kind: aztest.Refuse})
					cancel()
				})
				<-ctx.Done()
				return ctx.Err()
			}
			pass(100 * time.Millisecond)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			handled(string(m.Body))
			return nil
		}, &o)
		if err != nil {
			r.t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			cancel()
			<-done
		}
		pass(20 * time.Second)
	}
}

// Messages that were received beside one that ends its process were poisoned with it.
func TestAMessageThatEndsItsProcessIsIsolatedAndPoisonedAlone(t *testing.T) {
	for _, tt := range []struct {
		as     Encoding
		dedupe Dedupe
	}{{Envelope, DedupeNone}, {Envelope, DedupeOwner}, {Text, DedupeOwner}} {
		inBubble(t, func(t *testing.T, r *rig) {
			const most = 4
			for i := range 6 {
				r.sendAs(tt.as, fmt.Sprint("innocent", i))
			}
			r.sendAs(tt.as, "killer")
			for i := range 6 {
				r.sendAs(tt.as, fmt.Sprint("another", i))
			}
			handled := map[string]int{}
			r.killed(most+4, tt.as, ConsumerOptions{Dedupe: tt.dedupe, Markers: r.markers, MaxDeliveries: most}, func(body string) {
				r.mu.Lock()
				defer r.mu.Unlock()
				handled[body]++
			})
			if len(handled) != 12 || len(r.left(r.queue)) != 0 || len(r.left(r.poison)) != 1 {
				t.Errorf("%s %s: handled %v, %d left, %d poison", tt.as, tt.dedupe, handled, len(r.left(r.queue)), len(r.left(r.poison)))
			}
		})
	}
}

// Deliveries that never became a start, as those of lost receives and of processes that were killed with messages in hand, made
// a message poison that was never handled.
func TestOnlyStartsCountForMaxDeliveries(t *testing.T) {
	for _, as := range []Encoding{Envelope, Text} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.sendAs(as, "m")
			for range 30 {
				r.receiveAndDie(1, time.Second)
				pass(2 * time.Second)
			}
			c := r.consume(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: r.markers, Poison: r.poison, MaxDeliveries: 3})
			if c.Stats().Handled != 1 || len(r.left(r.poison)) != 0 {
				t.Errorf("%s: %d handled, %d poison", as, c.Stats().Handled, len(r.left(r.poison)))
			}
		})
	}
}

// A message that was postponed twenty times was poison.
func TestAMessageMayBePostponedAsOftenAsItLikes(t *testing.T) {
	for _, as := range []Encoding{Envelope, Text} {
		for _, dedupe := range []Dedupe{DedupeNone, DedupeOwner, DedupeComplete} {
			inBubble(t, func(t *testing.T, r *rig) {
				r.sendAs(as, "m")
				runs, last := 0, 0
				r.consume(func(_ context.Context, m *Message) error {
					if runs++; runs <= 50 {
						return Postpone(time.Second)
					}
					last = m.Attempt
					return nil
				}, ConsumerOptions{Markers: r.markers, Dedupe: dedupe, Poison: r.poison, MaxDeliveries: 5, MaxAttempts: 2, Poll: pollEvery(time.Second)})
				if runs != 51 || last != 1 || len(r.left(r.poison)) != 0 {
					t.Errorf("%s %s: %d runs, attempt %d, %d poison", as, dedupe, runs, last, len(r.left(r.poison)))
				}
			})
		}
	}
}

// An error whose pause is 0 means at once.
func TestRetryAfterNothingIsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		runs := 0
		c := r.consumer(func(context.Context, *Message) error {
			if runs++; runs < 4 {
				return RetryAfter(errors.New("again"), 0)
			}
			return nil
		}, ConsumerOptions{ExitWhenEmpty: true, Backoff: pollEvery(time.Hour)})
		began := time.Now()
		if err := c.Run(t.Context()); err != nil || runs != 4 || time.Since(began) > 2*time.Second {
			t.Errorf("%v, %d runs after %v", err, runs, time.Since(began))
		}
	})
}

// lateResponses delays the responses to one kind of request.
type lateResponses struct {
	next  policy.Transporter
	verb  string
	delay time.Duration
}

func (l lateResponses) Do(r *http.Request) (*http.Response, error) {
	resp, err := l.next.Do(r)
	if r.Method == l.verb {
		pass(l.delay)
	}
	return resp, err
}

func TestAMessageThatReturnsBeforeItsReleaseIsConfirmedIsHandledAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		r.queue = r.client("orders", lateResponses{r.service, http.MethodPut, time.Second})
		var at []time.Time
		r.consume(func(context.Context, *Message) error {
			if at = append(at, time.Now()); len(at) < 3 {
				return RetryAfter(errors.New("again"), 0)
			}
			return nil
		}, ConsumerOptions{Poll: pollEvery(100 * time.Millisecond)})
		if len(at) != 3 || at[2].Sub(at[0]) > 3*time.Second {
			t.Errorf("handled at %v", at)
		}
	})
}

func (r *rig) sendAs(as Encoding, id string) {
	r.t.Helper()
	p, err := NewProducer(r.queue, &ProducerOptions{Encoding: as})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := p.Send(context.Background(), Outgoing{ID: id, Body: []byte(id)}); err != nil {
		r.t.Fatal(err)
	}
}
