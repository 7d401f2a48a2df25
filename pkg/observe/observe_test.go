package observe_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/observe"
)

func TestTheZeroHooksObserveNothing(t *testing.T) {
	var h observe.Hooks
	h.Emit(t.Context(), observe.Event{Subject: observe.Change, Kind: observe.Conflict})
	ctx, end := h.Start(t.Context(), observe.Span{Name: "update"})
	if ctx != t.Context() {
		t.Error("the context changed")
	}
	end(nil)
	h.Span = func(ctx context.Context, _ observe.Span) (context.Context, func(error)) { return ctx, nil }
	_, end = h.Start(t.Context(), observe.Span{Name: "update"})
	end(errors.New("ended"))
}

func TestASpanIsEndedWithTheErrorOfWhatItCovers(t *testing.T) {
	type key struct{}
	var got error
	h := observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
		return context.WithValue(ctx, key{}, s.Name), func(err error) { got = err }
	}}
	ctx, end := h.Start(t.Context(), observe.Span{Name: "Put Blob", Request: new(observe.Request)})
	if ctx.Value(key{}) != "Put Blob" {
		t.Error("the context is not that of the span")
	}
	want := errors.New("412")
	if end(want); got != want {
		t.Errorf("the span ended with %v", got)
	}
}

// TestEveryEventIsLoggedWithItsFacts at a level that says how much it matters.
func TestEveryEventIsLoggedWithItsFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		var events []observe.Event
		h := observe.Hooks{
			Logger: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Event:  func(_ context.Context, e observe.Event) { events = append(events, e) },
		}
		h.Emit(t.Context(), observe.Event{Subject: observe.Lease, Kind: observe.Lost, Resource: "jobs/nightly", Err: errors.New("expired"), Fence: 7})
		h.Emit(t.Context(), observe.Event{Subject: observe.Lease, Kind: observe.Renewed, Resource: "jobs/nightly", Took: time.Second, Margin: 8 * time.Second, Holder: "web-1"})
		h.Emit(t.Context(), observe.Event{Subject: observe.Handled, Kind: observe.Retried, Resource: "orders", Message: &observe.Message{ID: "m1", Key: "order-17", Attempt: 2, Deliveries: 3}})
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		for i, want := range []string{
			`level=WARN msg="lease lost" resource=jobs/nightly fence=7 error=expired`,
			`level=DEBUG msg="lease renewed" resource=jobs/nightly took=1s margin=8s holder=web-1`,
			`level=INFO msg="message retried" resource=orders message=m1 key=order-17 attempt=2 deliveries=3`,
		} {
			if i >= len(lines) || !strings.Contains(lines[i], want) {
				t.Errorf("record %d is not %s:\n%s", i, want, b.String())
			}
		}
		if len(events) != 3 || !events[0].At.Equal(time.Now()) {
			t.Errorf("events: %+v", events)
		}
	})
}

// TestJoinedHooksAreBothCalled, the spans of the second within those of the first.
func TestJoinedHooksAreBothCalled(t *testing.T) {
	var got []string
	hooks := func(name string) observe.Hooks {
		return observe.Hooks{
			Span: func(ctx context.Context, _ observe.Span) (context.Context, func(error)) {
				got = append(got, name+" begins")
				return ctx, func(err error) { got = append(got, name+" ends: "+err.Error()) }
			},
			Event: func(_ context.Context, e observe.Event) { got = append(got, name+" "+string(e.Kind)) },
		}
	}
	logger := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		a, b observe.Hooks
		want string
	}{
		{hooks("a"), hooks("b"), "a begins, b begins, a lost, b lost, b ends: 412, a ends: 412"},
		{hooks("a"), observe.Hooks{Logger: logger}, "a begins, a lost, a ends: 412"},
		{observe.Hooks{Logger: logger}, hooks("b"), "b begins, b lost, b ends: 412"},
	} {
		got = nil
		joined := observe.Join(c.a, c.b)
		_, end := joined.Start(t.Context(), observe.Span{Name: "update"})
		joined.Emit(t.Context(), observe.Event{Kind: observe.Lost})
		end(errors.New("412"))
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s, want %s", s, c.want)
		}
		if (joined.Logger != nil) != (c.a.Logger != nil || c.b.Logger != nil) {
			t.Error("the logger is gone")
		}
	}
}
