package pessimistic

import (
	"context"
	"log/slog"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

// Hooks let a program watch. The zero value is silence.
type Hooks struct {
	// Logger gets every Event: losses as warnings, doubts and failed renewals as information, the rest at debug level.
	// Lease ids are never logged: who knows one can act as the holder.
	Logger *slog.Logger

	// Event is called with every Event, one at a time for a lease, and must return soon: the renewing waits for it.
	// It must not call back into the lease.
	Event func(Event)

	// Trace is called before every request, and the function it returns after it, with the error. The context it returns
	// is the request's, so a span in it becomes the parent of the SDK's own.
	Trace func(ctx context.Context, op, resource string) (context.Context, func(error))
}

// EventKind is what has happened.
type EventKind string

// The kinds.
const (
	Waiting     EventKind = "waiting"      // somebody else holds it; Holder says who, if known
	Acquired    EventKind = "acquired"     // Took is how long it took, waiting included
	Renewed     EventKind = "renewed"      // Took is the round trip, Margin what was left until the work would have been stopped
	RenewFailed EventKind = "renew-failed" // Err says why, Margin what is left
	Doubted     EventKind = "doubted"      // the write gate has closed; Err says why
	Assured     EventKind = "assured"      // a renewal has opened the gate again
	Lost        EventKind = "lost"         // Err is a *LostError
	Released    EventKind = "released"     // Err is nil if the service has confirmed it
	HandedOver  EventKind = "handed-over"  // to another goroutine of this process
)

// Event is something that happened to a lease or a lock. What does not apply is empty.
type Event struct {
	Kind     EventKind
	Resource string
	At       time.Time
	Took     time.Duration
	Margin   time.Duration
	Fence    fence.Token
	Holder   string
	Err      error
}

// emit reports an event. It is called without locks.
func (h Hooks) emit(e Event) {
	e.At = time.Now()
	if h.Event != nil {
		h.Event(e)
	}
	if h.Logger == nil {
		return
	}
	level := slog.LevelDebug
	switch e.Kind {
	case Lost:
		level = slog.LevelWarn
	case RenewFailed, Doubted, Assured:
		level = slog.LevelInfo
	}
	attrs := []slog.Attr{slog.String("resource", e.Resource)}
	if e.Took != 0 {
		attrs = append(attrs, slog.Duration("took", e.Took))
	}
	if e.Margin != 0 {
		attrs = append(attrs, slog.Duration("margin", e.Margin))
	}
	if e.Fence != 0 {
		attrs = append(attrs, slog.Int64("fence", int64(e.Fence)))
	}
	if e.Holder != "" {
		attrs = append(attrs, slog.String("holder", e.Holder))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", azerr.Summary(e.Err)))
	}
	h.Logger.LogAttrs(context.Background(), level, "lease "+string(e.Kind), attrs...)
}
