package wire_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // requests in simulated time leave much to collect, and little is in use
	goleak.VerifyTestMain(m)
}

// service answers each request with the next of its answers, and the last one from then on.
type service struct {
	answers  []answer
	requests int
}

type answer struct {
	status  int
	code    string // of the service; empty for the response of an intermediary
	header  http.Header
	lost    bool // the request is applied, and its response is lost
	instead func()
}

func (s *service) Do(r *http.Request) (*http.Response, error) {
	a := s.answers[min(s.requests, len(s.answers)-1)]
	s.requests++
	if a.instead != nil {
		a.instead()
	}
	if a.lost {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	header := http.Header{}
	if a.code != "" {
		header = http.Header{"X-Ms-Request-Id": {"r"}, "X-Ms-Error-Code": {a.code}}
	}
	for name, values := range a.header {
		header[name] = values
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: http.NoBody, Request: r}, nil
}

// send returns a function that sends a request as the SDK's clients do: through a pipeline that retries by default.
func (s *service) send() func(context.Context) error {
	pipeline := runtime.NewPipeline("test", "v0", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: s})
	return func(ctx context.Context) error {
		req, err := runtime.NewRequest(ctx, http.MethodPut, "http://account.test/box/b")
		if err != nil {
			return err
		}
		resp, err := pipeline.Do(req)
		if err == nil && resp.StatusCode >= 300 {
			err = runtime.NewResponseError(resp)
		}
		return err
	}
}

var (
	ok       = answer{status: 200, code: "OK"}
	busy     = answer{status: 503, code: "ServerBusy"}
	conflict = answer{status: 412, code: "ConditionNotMet"}
	lost     = answer{lost: true}
)

var steady = retry.Budget{Attempts: 4, Elapsed: -1, Backoff: retry.Backoff{Base: time.Second, Rand: func() float64 { return 1 }}}

func TestARequestIsSentOnceWithoutTheRetriesOfTheSDK(t *testing.T) {
	s := &service{answers: []answer{busy}}
	counted, traced := 0, ""
	w := wire.Wire{Count: func() { counted++ }, Trace: func(ctx context.Context, op string) (context.Context, func(error)) {
		return ctx, func(err error) { traced += op + ":" + azerr.Classify(err).Code + " " }
	}}
	err := w.Once(t.Context(), "write", 0, s.send())
	if azerr.Classify(err).Code != "ServerBusy" || s.requests != 1 || counted != 1 || traced != "write:ServerBusy " {
		t.Errorf("%v after %d requests, counted %d, traced %q; want 1", err, s.requests, counted, traced)
	}
}

func TestASuccessOfAnIntermediaryIsNone(t *testing.T) {
	s := &service{answers: []answer{{status: 200}}}
	err := wire.Wire{}.Once(t.Context(), "write", 0, s.send())
	if _, foreign := errors.AsType[*azerr.ForeignError](err); !foreign || !azerr.Classify(err).Ambiguous() {
		t.Errorf("err = %v, want a *azerr.ForeignError, whose outcome is unknown", err)
	}
}

func TestARequestIsRepeatedUntilItIsAnswered(t *testing.T) {
	for _, tt := range []struct {
		name                       string
		answers                    []answer
		code                       string
		requests, ambiguous, waits int // waits in seconds
	}{
		{"an answer", []answer{ok}, "", 1, 0, 0},
		{"busy, then an answer", []answer{busy, busy, ok}, "", 3, 0, 1 + 2},
		{"a lost response, then a conflict", []answer{lost, conflict}, "ConditionNotMet", 2, 1, 3 + 1},
		{"a refusal", []answer{conflict, ok}, "ConditionNotMet", 1, 0, 0},
		{"busy until the budget is spent", []answer{busy}, "ServerBusy", 4, 0, 1 + 2 + 4},
		{"a wish for a pause", []answer{{status: 503, code: "ServerBusy", header: http.Header{"Retry-After": {"7"}}}, ok}, "", 2, 0, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, s := time.Now(), &service{answers: tt.answers}
				sent, err := wire.Wire{}.Send(t.Context(), "write", wire.Again{Try: 3 * time.Second, Budget: steady}, s.send())
				if azerr.Classify(err).Code != tt.code || (err == nil) != (tt.code == "") || sent.Tries != tt.requests || s.requests != tt.requests || sent.Ambiguous != tt.ambiguous {
					t.Errorf("%v after %d requests, %+v; want %q after %d, %d ambiguous", err, s.requests, sent, tt.code, tt.requests, tt.ambiguous)
				}
				if waited := time.Since(began); waited != time.Duration(tt.waits)*time.Second || !sent.First.Equal(began) {
					t.Errorf("waited %v since %v, want %d s since %v", waited, sent.First, tt.waits, began)
				}
			})
		})
	}
}

func TestAJudgeSettlesWhatTheServiceCannotSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probed := errors.New("another's write")
		for name, tt := range map[string]struct {
			answers  []answer
			verdict  error
			requests int
		}{
			"a conflict with its own first try is a success":       {[]answer{lost, conflict}, nil, 2},
			"a conflict with another's write is the judge's error": {[]answer{lost, conflict}, probed, 2},
			"a conflict without a lost response is final":          {[]answer{conflict}, nil, 1},
		} {
			s, judged := &service{answers: tt.answers}, 0
			_, err := wire.Wire{}.Send(t.Context(), "write", wire.Again{Try: time.Second, Budget: steady, Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
				judged++
				if f.Outcome.Kind == azerr.Conflict && f.Ambiguous {
					return wire.Final, tt.verdict
				}
				return f.Usual()
			}}, s.send())
			want := tt.verdict
			if len(tt.answers) == 1 {
				if azerr.Classify(err).Kind != azerr.Conflict {
					t.Errorf("%s: err = %v", name, err)
				}
			} else if err != want {
				t.Errorf("%s: err = %v, want %v", name, err, want)
			}
			if s.requests != tt.requests || judged != tt.requests {
				t.Errorf("%s: %d requests, judged %d times, want %d", name, s.requests, judged, tt.requests)
			}
		}
	})
}

func TestALookBeforeATryCanMakeItUnnecessary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, looks := &service{answers: []answer{lost}}, 0
		refused := errors.New("it must not be made")
		for _, end := range []error{nil, refused} {
			s.requests, looks = 0, 0
			sent, err := wire.Wire{}.Send(t.Context(), "write", wire.Again{Try: time.Second, Budget: steady, Before: func(_ context.Context, s wire.Sent) (bool, error) {
				looks++
				return s.Tries > 0, end
			}}, s.send())
			if wantRequests := map[error]int{nil: 1, refused: 0}[end]; err != end || s.requests != wantRequests || sent.Tries != wantRequests {
				t.Errorf("%v: err = %v after %d looks and %d requests, %+v", end, err, looks, s.requests, sent)
			}
		}
	})
}

func TestAnEndedContextIsReturnedWithItsCauseUnlessTheServiceHasDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the lease was lost")
		for name, tt := range map[string]struct {
			answer            answer
			before            bool // ctx ends before the first try, not during it
			tries, ambiguous  int
			wantCause, wantOK bool
		}{
			"before the first try": {answer: ok, before: true, wantCause: true},
			"with a lost response": {answer: lost, tries: 1, ambiguous: 1, wantCause: true},
			"with a busy service":  {answer: busy, tries: 1, wantCause: true},
			"with a refusal":       {answer: conflict, tries: 1},
			"with a success":       {answer: ok, tries: 1, wantOK: true},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			tt.answer.instead = func() { cancel(cause) }
			if tt.before {
				cancel(cause)
			}
			send := (&service{answers: []answer{tt.answer}}).send()
			sent, err := wire.Wire{}.Send(ctx, "write", wire.Again{Budget: steady}, func(ctx context.Context) error {
				if !tt.answer.lost {
					ctx = context.WithoutCancel(ctx) // the response arrives in spite of the end
				}
				return send(ctx)
			})
			if errors.Is(err, cause) != tt.wantCause || (err == nil) != tt.wantOK || sent.Tries != tt.tries || sent.Ambiguous != tt.ambiguous {
				t.Errorf("%s: err = %v, %+v", name, err, sent)
			}
			cancel(nil)
		}
	})
}

// TestTheEndOfAContextNamesTheLastFailure: that time ran out does not say what it ran out on.
func TestTheEndOfAContextNamesTheLastFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the shift is over")
		for want, answers := range map[string][]answer{
			"the shift is over; the last failure: 503 ServerBusy (request r) (the last of 3 tries in 3.5s)": {busy},
			"the shift is over; the last failure: 503 ServerBusy (request r) (the last of 2 tries in 3.5s)": {busy, lost},
			"the shift is over": {lost},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(3500*time.Millisecond, func() { cancel(cause) })
			_, err := wire.Wire{}.Send(ctx, "write", wire.Again{Budget: steady}, (&service{answers: answers}).send())
			text, _, _ := strings.Cut(fmt.Sprint(err), ": the partition or the account gets more")
			if _, answered := errors.AsType[*azcore.ResponseError](err); text != want || !errors.Is(err, cause) || answered {
				t.Errorf("err = %v, want %s", err, want)
			}
		}
	})
}

func TestAPauseOfTheCallerReplacesThatOfTheBudget(t *testing.T) {
	s, pauses := &service{answers: []answer{busy}}, 0
	_, err := wire.Wire{}.Send(t.Context(), "write", wire.Again{Budget: steady, Pause: func(_ context.Context, loop *retry.Loop, _ time.Duration) error {
		if pauses++; pauses == 3 {
			return retry.ErrExhausted
		}
		return nil
	}}, s.send())
	if azerr.Classify(err).Code != "ServerBusy" || s.requests != 3 {
		t.Errorf("%v after %d requests, want the service's error after 3", err, s.requests)
	}
}

func TestTheZeroAgainSendsOnce(t *testing.T) {
	s := &service{answers: []answer{busy}}
	if _, err := (wire.Wire{}).Send(t.Context(), "write", wire.Again{}, s.send()); err == nil || s.requests != 1 || strings.Contains(err.Error(), "exhausted") {
		t.Errorf("%v after %d requests, want the service's error after 1", err, s.requests)
	}
}

func TestATryThatFollowsAtOnceNeitherWaitsNorCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, s := time.Now(), &service{answers: []answer{conflict, conflict, busy, conflict, ok}}
		sent, err := wire.Wire{}.Send(t.Context(), "write", wire.Again{Budget: retry.Budget{Attempts: 2, Elapsed: -1, Backoff: steady.Backoff}, Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
			if f.Outcome.Kind == azerr.Conflict {
				return wire.AtOnce, f.Err
			}
			return f.Usual()
		}}, s.send())
		if err != nil || sent.Tries != 5 || time.Since(began) != time.Second {
			t.Errorf("%v, %+v after %v, want a success of the fifth try after one wait", err, sent, time.Since(began))
		}
	})
}

// TestRequestsOfAGroupAreCountedOneByOne: a try may take several requests, and each is one on the bill.
func TestRequestsOfAGroupAreCountedOneByOne(t *testing.T) {
	s, counted := &service{answers: []answer{ok, conflict}}, 0
	var spans []string
	hooks := observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
		return ctx, func(err error) {
			spans = append(spans, fmt.Sprint(s.Name, " ", s.Resource, " ", s.Request != nil, " ", err != nil))
		}
	}}
	err := wire.Observed(hooks, "box/a", func() { counted++ }).Once(t.Context(), "", 0, func(ctx context.Context) error {
		send := func(ctx context.Context) (int, error) { return 7, s.send()(ctx) }
		if n, err := wire.Request(ctx, "Get Blob", send); n != 7 || err != nil {
			t.Errorf("Get Blob = %d, %v", n, err)
		}
		_, err := wire.Request(ctx, "Put Blob", send)
		return err
	})
	want := []string{"Get Blob box/a true false", "Put Blob box/a true true"}
	if azerr.Classify(err).Kind != azerr.Conflict || counted != 2 || s.requests != 2 || !slices.Equal(spans, want) {
		t.Errorf("%v, %d counted, spans %q", err, counted, spans)
	}
	if n, err := wire.Request(t.Context(), "Get Blob", func(context.Context) (int, error) { return 1, nil }); n != 1 || err != nil {
		t.Errorf("without a wire: %d, %v", n, err)
	}
}

// TestATryOfSeveralRequestsIsBoundedToo: the bound holds for all requests of a send function that has no name of its own.
func TestATryOfSeveralRequestsIsBoundedToo(t *testing.T) {
	for _, op := range []string{"Put Blob", ""} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := wire.Wire{}.Once(t.Context(), op, time.Second, func(ctx context.Context) error {
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				return ctx.Err()
			})
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
				t.Errorf("operation %q: %v after %v, want the end of the try after 1 s", op, err, took)
			}
		})
	}
}

// TestAWishBeyondTheBudgetEndsAtOnce: a Retry-After that ends after the budget, or after the caller's deadline, is not waited for, not even
// in part.
func TestAWishBeyondTheBudgetEndsAtOnce(t *testing.T) {
	for name, tt := range map[string]struct{ elapsed, deadline time.Duration }{"budget": {5 * time.Second, time.Hour}, "deadline": {-1, 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{answers: []answer{{status: 503, code: "ServerBusy", header: http.Header{"Retry-After": {"6"}}}}}
			ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
			defer cancel()
			began := time.Now()
			_, err := wire.Wire{}.Send(ctx, "write", wire.Again{Budget: retry.Budget{Attempts: -1, Elapsed: tt.elapsed}}, s.send())
			if took := time.Since(began); azerr.Classify(err).Code != "ServerBusy" || took != 0 || s.requests != 1 {
				t.Errorf("%s: %v after %v and %d requests, want the refusal at once", name, err, took, s.requests)
			}
		})
	}
}
