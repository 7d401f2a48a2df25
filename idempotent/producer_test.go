package idempotent

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/uuid"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestAMessageWhoseAnswerIsLostIsSentAgainUnderItsID(t *testing.T) {
	for kind, copies := range map[aztest.FaultKind]int{aztest.LoseAnswer: 2, aztest.LoseRequest: 1, aztest.Throttle: 1, aztest.FailAfterCommit: 2, aztest.AnswerTwice: 2} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.service.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Put Message"), Count: 1})
			p, err := NewProducer(r.queue, nil)
			if err != nil {
				t.Fatal(err)
			}
			sent, err := p.Send(t.Context(), Outgoing{Body: []byte("x")})
			if id, bad := uuid.Parse(sent.ID); err != nil || bad != nil || id.Version() != 7 {
				t.Errorf("%s: %+v, %v", kind, sent, err)
			}
			if n := len(r.left(r.queue)); n != copies {
				t.Errorf("%s: %d messages in the queue, want %d", kind, n, copies)
			}
			runs := 0
			r.consume(func(_ context.Context, m *Message) error {
				if runs++; m.Key != sent.ID {
					t.Errorf("%s: key %s", kind, m.Key)
				}
				return nil
			}, ConsumerOptions{Markers: r.markers})
			if runs != 1 {
				t.Errorf("%s: handled %d times", kind, runs)
			}
		})
	}
}

func TestAnUnconfirmedSendNamesTheID(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Message")})
		p, err := NewProducer(r.queue, &ProducerOptions{Tries: 2})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Send(t.Context(), Outgoing{ID: "mine", Body: []byte("x")})
		failed, ok := errors.AsType[*SendError](err)
		if !ok || !failed.Open || failed.ID != "mine" || !strings.Contains(err.Error(), "mine") || r.service.Requests() != 2 {
			t.Errorf("err = %v after %d requests", err, r.service.Requests())
		}
		r.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch"})
		_, err = p.Send(t.Context(), Outgoing{ID: "mine", Body: []byte("x")})
		if failed, ok := errors.AsType[*SendError](err); !ok || failed.Open {
			t.Errorf("err = %v, want it to be sure that nothing was sent", err)
		}
	})
}

func TestWhatCannotBeSentIsRefusedBeforeItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p, err := NewProducer(r.queue, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, m := range map[string]Outgoing{
			"a long id":     {ID: strings.Repeat("x", 201)},
			"a delay":       {Delay: 8 * 24 * time.Hour},
			"a fraction":    {Delay: 1500 * time.Millisecond},
			"a short life":  {Delay: time.Minute, TTL: time.Minute},
			"too much body": {Body: []byte(strings.Repeat("x", 65<<10))},
		} {
			if _, err := p.Send(t.Context(), m); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if _, err := NewProducer(r.queue, &ProducerOptions{Encoding: Auto}); err == nil {
			t.Error("auto: no error")
		}
		if _, err := NewProducer(r.queue, &ProducerOptions{Encoding: "morse"}); err == nil {
			t.Error("morse: no error")
		}
		if r.service.Requests() != 0 {
			t.Errorf("sent %v", r.service.Log())
		}
	})
}

// respondent answers every request of an operation in place of the service.
type respondent struct {
	next   policy.Transporter
	method string
	answer func(r *http.Request) (*http.Response, error)
}

func (a respondent) Do(r *http.Request) (*http.Response, error) {
	if r.Method == a.method {
		return a.answer(r)
	}
	return a.next.Do(r)
}

// A message that had been refused twice was said to have been sent, perhaps: no connection could be made, or the queue was created and
// the next request was forbidden. One whose response had no message in it was said not to have been sent.
func TestASendErrorSaysWhetherTheMessageMayBeInTheQueue(t *testing.T) {
	withoutMessage := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusCreated, Request: r, Header: http.Header{"X-Ms-Request-Id": {"1"}},
			Body: io.NopCloser(strings.NewReader("<QueueMessagesList/>"))}, nil
	}
	for name, tt := range map[string]struct {
		faults []aztest.Fault
		answer func(r *http.Request) (*http.Response, error)
		ended  bool // the context
		open   bool
		tries  int
	}{
		"no connection":            {faults: []aztest.Fault{{Kind: aztest.Refuse}}, tries: 6},
		"lost, then no connection": {faults: []aztest.Fault{{Kind: aztest.LoseAnswer, Count: 1}, {Kind: aztest.Refuse}}, open: true, tries: 6},
		"created, then forbidden": {faults: []aztest.Fault{{Kind: aztest.Answer, Status: 404, Code: "QueueNotFound", Match: aztest.Op("Put Message"), Count: 1},
			{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Put Message")}}, tries: 2},
		"no message in the response": {answer: withoutMessage, open: true, tries: 1},
		"ended before":               {ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.service.SetFaults(tt.faults...)
				queue := r.queue
				if tt.answer != nil {
					queue = r.client("orders", respondent{r.service, http.MethodPost, tt.answer})
				}
				p, err := NewProducer(queue, &ProducerOptions{CreateQueue: true})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.ended {
					cancel()
				}
				sent, err := p.Send(ctx, Outgoing{ID: "mine", Body: []byte("x")})
				failed, ok := errors.AsType[*SendError](err)
				if !ok || failed.Open != tt.open || errors.Is(err, ErrOutcomeUnknown) != tt.open || strings.Contains(err.Error(), "may have been sent") != tt.open || sent.Tries != tt.tries {
					t.Errorf("after %d tries: %v", sent.Tries, err)
				}
			})
		})
	}
}

// TestAServiceThatHangsIsAskedAgain: a try had no bound, and a send was stuck for as long as its context allowed.
func TestAServiceThatHangsIsAskedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p, err := NewProducer(r.queue, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.service.SetFaults(aztest.Fault{Kind: aztest.Hang, Count: 2})
		began := time.Now()
		sent, err := p.Send(context.Background(), Outgoing{Body: []byte("x")})
		if took := time.Since(began); err != nil || sent.Tries != 3 || took > 22*time.Second {
			t.Errorf("%+v, %v after %v", sent, err, took)
		}

		r.service.SetFaults(aztest.Fault{Kind: aztest.Hang})
		began = time.Now()
		_, err = p.Send(context.Background(), Outgoing{Body: []byte("x")})
		failed, ok := errors.AsType[*SendError](err)
		if took := time.Since(began); !ok || !failed.Open || took < time.Minute || took > 80*time.Second {
			t.Errorf("without an end of its own: %v after %v", err, took)
		}

		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		began = time.Now()
		_, err = p.Send(ctx, Outgoing{Body: []byte("x")})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 15*time.Second {
			t.Errorf("with the caller's end: %v after %v", err, took)
		}
	})
}

func TestAMissingQueueIsCreatedOnRequest(t *testing.T) {
	for _, kind := range []aztest.FaultKind{"", aztest.LoseAnswer, aztest.Throttle, aztest.FailAfterCommit, aztest.AnswerTwice} {
		inBubble(t, func(t *testing.T, r *rig) {
			missing := r.client("new", r.service)
			p, err := NewProducer(missing, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Send(t.Context(), Outgoing{}); !azerr.Has(err, "QueueNotFound") {
				t.Errorf("without CreateQueue: %v", err)
			}
			if kind != "" {
				r.service.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Create Queue"), Count: 1})
			}
			if p, err = NewProducer(missing, &ProducerOptions{CreateQueue: true}); err != nil {
				t.Fatal(err)
			}
			r.service.Reset()
			if _, err := p.Send(t.Context(), Outgoing{}); err != nil || kind == "" && r.service.Requests() != 3 {
				t.Errorf("%q: %v after %d requests", kind, err, r.service.Requests())
			}
			r.service.Reset()
			if _, err := p.Send(t.Context(), Outgoing{}); err != nil || r.service.Requests() != 1 {
				t.Errorf("%q: when it is there: %v after %d requests", kind, err, r.service.Requests())
			}
		})
	}
}

func FuzzDecodingNeverLosesABody(f *testing.F) {
	for _, s := range []string{"", "test", "aGVsbG8=", `{"azconc":1,"id":"x","text":"y"}`, `{"azconc":2}`, "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := format.Decode(text, format.Auto)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if e.As == format.Text && string(e.Body) != text {
			t.Errorf("%q became %q", text, e.Body)
		}
		if again, err := e.Encode(format.Envelope); err == nil && e.ID != "" {
			if back, err := format.Decode(again, format.Envelope); err != nil || string(back.Body) != string(e.Body) || back.ID != e.ID {
				t.Errorf("%q: %+v came back as %+v, %v", text, e, back, err)
			}
		}
	})
}

// The creation of a queue that had been deleted just before gave up after a few seconds; the service frees the name after 30 s
// at the earliest.
func TestAQueueIsCreatedWhenItsNameIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.queue.Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		p, err := NewProducer(r.queue, &ProducerOptions{CreateQueue: true, Tries: 2})
		if err != nil {
			t.Fatal(err)
		}
		r.service.Reset()
		if _, err := p.Send(t.Context(), Outgoing{ID: "m"}); err != nil || r.service.Requests() > 25 {
			t.Errorf("%v after %d requests", err, r.service.Requests())
		}
	})
	inBubble(t, func(t *testing.T, r *rig) {
		var runs tally
		c := r.consumer(func(_ context.Context, m *Message) error { runs.add(m.Key); return nil }, ConsumerOptions{CreateQueue: true, Poll: pollEvery(time.Second)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		for _, id := range []string{"a", "b"} {
			if _, err := r.queue.Delete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Minute)
			r.send(id)
			pass(10 * time.Second)
		}
		cancel()
		if err := <-ended; err != nil || len(runs.n) != 2 {
			t.Errorf("%v, handled %v", err, runs.n)
		}
	})
}

// TestAnOutageWhileTheQueueIsCreatedEndsNoConsumer: six answers of a proxy between those that the name is not free yet ended Run, though a
// receive in the same outage does not.
func TestAnOutageWhileTheQueueIsCreatedEndsNoConsumer(t *testing.T) {
	for name, kind := range map[string]aztest.Fault{"a proxy": {Kind: aztest.Page, Status: 504}, "a busy service": {Kind: aztest.Throttle}, "nothing": {Kind: aztest.LoseRequest}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				if _, err := r.queue.Delete(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				p := r.process()
				var created atomic.Int64
				creates := func(odd int64) func(*aztest.Request) bool {
					return func(q *aztest.Request) bool {
						n := created.Load()
						return q.Op == "Create Queue" && n < 40 && n%2 == odd
					}
				}
				count := func(q *aztest.Request) bool {
					created.Add(map[bool]int64{true: 1}[q.Op == "Create Queue"])
					return false
				}
				kind.Match = creates(1)
				p.wire.SetFaults(aztest.Fault{Kind: aztest.Refuse, Match: count}, kind,
					aztest.Fault{Kind: aztest.Answer, Status: 409, Code: "QueueBeingDeleted", Match: creates(0)})
				runs := 0
				c, err := NewConsumer(p.queue, func(context.Context, *Message) error { runs++; return nil },
					&ConsumerOptions{Dedupe: DedupeNone, CreateQueue: true, Poll: pollEvery(time.Second)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- c.Run(ctx) }()
				pass(15 * time.Minute)
				if created.Load() >= 40 {
					r.send("m")
				}
				pass(time.Minute)
				cancel()
				if err := <-ended; err != nil || runs != 1 {
					t.Errorf("%v after %d requests to create the queue, %d messages handled", err, created.Load(), runs)
				}
			})
		})
	}
}
