package pessimistic

import (
	"context"
	"log/slog"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

// Hooks report events to the program. The zero value reports nothing.
type Hooks struct {
	// Logger receives every Event: losses at level Warn, doubts and failed renewals at Info, the rest at Debug. Lease
	// ids are never logged, because a client that knows one can act as the holder.
	Logger *slog.Logger

	// Event is called with every Event, one at a time per lease. It must return soon, because renewals wait for it, and
	// must not call methods of the lease.
	Event func(Event)

	// Trace is called before every request, and the function it returns is called after the request, with its error.
	// The returned context is used for the request, so a span in it becomes the parent of the SDK's spans.
	Trace func(ctx context.Context, op, resource string) (context.Context, func(error))
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds.
const (
	Waiting     EventKind = "waiting"      // another client holds it; Holder names it, if known. Repeated every minute
	Acquired    EventKind = "acquired"     // Took is the time it took, waiting included
	Renewed     EventKind = "renewed"      // Took is the round trip; Margin is the time that was left until the work would have stopped
	RenewFailed EventKind = "renew-failed" // Err says why; Margin is how much time is left
	Doubted     EventKind = "doubted"      // the write gate has closed; Err says why
	Assured     EventKind = "assured"      // a renewal has reopened the gate
	Lost        EventKind = "lost"         // Err is a *LostError
	Released    EventKind = "released"     // Err is nil if the service has confirmed the release
	HandedOver  EventKind = "handed-over"  // to another goroutine of this process
)

// Event is something that happened to a lease or a lock. Fields that do not apply are zero.
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

// emit reports an event. It is called with no locks held.
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
