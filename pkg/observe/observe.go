// Package observe is how a program follows what azconc does: Hooks in the options of every package receive spans, one for
// each operation and each request, and events, such as a conflict, a lost lease or a poisoned message.
//
// The package imports nothing of a telemetry library. An adapter makes spans and metrics of what the hooks receive.
package observe

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// Hooks are the functions that azconc calls. The zero value observes nothing.
//
// The functions are called synchronously, and must return soon: a renewal of a lease waits for them, and so do all that wait for the
// same optimistic.Document. So a hook must not use the Document that it observes; if it does, with the
// context that it was given, it gets an error.
// They must be safe for concurrent use, because operations run concurrently and one set of hooks serves many.
//
// A panic in one of them is recovered, and reported to slog.Default at level Error: it changes neither the operation nor its result.
// Many calls come from goroutines of azconc, where the program could not recover it, and where a lease or a message is at stake.
type Hooks struct {
	// Logger receives every Event: losses at level Warn, doubts and failures at Info, the rest at Debug. Ids of leases, pop
	// receipts and bodies of messages are never logged. Defaults to no logging.
	Logger *slog.Logger

	// Span is called when an operation or a request begins, and the function that it returns when that ends, with its
	// error. The operation or request runs in the returned context, so the spans of requests can be children of that of
	// their operation. Defaults to none.
	Span func(ctx context.Context, s Span) (context.Context, func(err error))

	// Event is called with every Event. Defaults to none.
	Event func(ctx context.Context, e Event)
}

// Span is an operation or a request that begins.
type Span struct {
	// Name of the operation, with its package, such as "optimistic.Update" or "pessimistic.Lock", or of the request, as the REST
	// reference names it, such as "Put Blob".
	Name string

	Resource string   // the path of the resource, never its URL
	Request  *Request // nil for an operation, which may send any number of requests
	Message  *Message // the queue message that is handled; nil if there is none
}

// Request is what became of a request. It is complete when the span ends, and zero before: the SDK decides where to send it. Without a
// response Status is 0, and the rest is zero too if the transport does not say where the request went.
type Request struct {
	Method string // such as "PUT"
	Host   string // such as "acct.blob.core.windows.net"
	Port   int
	Status int // of the response
}

// Message is a queue message that an operation or an event concerns.
type Message struct {
	ID         string // of the service
	Key        string // of the sender, by which duplicates are known
	Attempt    int    // starts of the handler, this one included
	Deliveries int    // receives, by the service's count

	// Age is how long it had been in the queue when it was received, by the service's clock. Zero if it was not received.
	Age time.Duration

	// Headers are those that the sender has given the message, among them a trace context. They must not be changed.
	Headers map[string]string
}

// Join returns hooks that call those of a and then those of b. Spans of b begin within those of a. Of two Loggers the result has that
// of a.
func Join(a, b Hooks) Hooks {
	joined := Hooks{Logger: a.Logger, Span: a.Span, Event: a.Event}
	if joined.Logger == nil {
		joined.Logger = b.Logger
	}
	switch {
	case a.Span == nil:
		joined.Span = b.Span
	case b.Span != nil:
		joined.Span = func(ctx context.Context, s Span) (context.Context, func(error)) {
			ctx, outer := a.Start(ctx, s)
			ctx, inner := b.Start(ctx, s)
			return ctx, func(err error) { inner(err); outer(err) }
		}
	}
	switch {
	case a.Event == nil:
		joined.Event = b.Event
	case b.Event != nil:
		joined.Event = func(ctx context.Context, e Event) { a.event(ctx, e); b.event(ctx, e) }
	}
	return joined
}

// Start begins a span, and returns the context to continue in and the function that ends it. It never returns nil.
func (h Hooks) Start(ctx context.Context, s Span) (context.Context, func(error)) {
	if h.Span == nil {
		return ctx, func(error) {}
	}
	within, end := h.span(ctx, s)
	if within == nil {
		within = ctx
	}
	if end == nil {
		return within, func(error) {}
	}
	return within, func(err error) {
		defer contain(ctx, "Span")
		end(err)
	}
}

func (h Hooks) span(ctx context.Context, s Span) (context.Context, func(error)) {
	defer contain(ctx, "Span")
	return h.Span(ctx, s)
}

func (h Hooks) event(ctx context.Context, e Event) {
	defer contain(ctx, "Event")
	h.Event(ctx, e)
}

func (h Hooks) log(ctx context.Context, e Event) {
	defer contain(ctx, "Logger")
	if h.Logger.Enabled(ctx, e.level()) {
		h.Logger.LogAttrs(ctx, e.level(), string(e.Subject)+" "+string(e.Kind), e.attrs()...)
	}
}

// contain is deferred around each call of a hook. The text of the panic is not logged, because it can have secrets.
func contain(ctx context.Context, hook string) {
	if p := recover(); p != nil {
		slog.Default().LogAttrs(ctx, slog.LevelError, "a hook of azconc panicked", slog.String("hook", hook),
			slog.String("type", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
	}
}
