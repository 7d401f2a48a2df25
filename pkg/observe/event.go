package observe

import (
	"context"
	"log/slog"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

// Subject is what an Event is about.
type Subject string

// The subjects.
const (
	Change  Subject = "change"  // a conditional write of package optimistic
	Lease   Subject = "lease"   // a lease or a lock of package pessimistic
	Handled Subject = "message" // a message of package idempotent
)

// Kind is what happened. The values are stable: they are the names of log records and the labels of metrics.
type Kind string

// The kinds of events about a Change.
const (
	Conflict Kind = "conflict"      // another writer was faster; the change runs again
	Unheard  Kind = "lost-response" // it is open whether a write was applied; Err says why
	Resolved Kind = "resolved"      // a look has shown whether it was
)

// The kinds of events about a Lease.
const (
	Waiting     Kind = "waiting"      // another client holds it, and Holder names it, if known; or it is free, and others came before
	Acquired    Kind = "acquired"     // Took is the time that it took, waiting included
	Renewed     Kind = "renewed"      // Took is the round trip; Margin is the time that was left until the work would have stopped
	RenewFailed Kind = "renew-failed" // Err says why; Margin is the time that is left
	Doubted     Kind = "doubted"      // the write gate has closed; Err says why
	Assured     Kind = "assured"      // a renewal has opened the gate again
	Released    Kind = "released"     // Err is nil if the service has confirmed the release
	HandedOver  Kind = "handed-over"  // to another goroutine of this process
)

// Lost is an event about a Lease, whose Err is then a *pessimistic.LostError, or about a message, which another consumer
// may receive.
const Lost Kind = "lost"

// The kinds of events about a message.
const (
	Received  Kind = "received"  // from the queue; the handler has not run yet
	Started   Kind = "started"   // its handler begins
	Completed Kind = "completed" // handled and deleted; Took is the time that the handler ran
	Duplicate Kind = "duplicate" // a copy of a message that was handled; deleted
	Retried   Kind = "retried"   // the handler failed; the message returns
	Poisoned  Kind = "poisoned"  // moved to the poison queue; Err says why
	Dropped   Kind = "dropped"   // deleted without having been handled, as the handler asked
	Returned  Kind = "returned"  // put back, because the consumer stops or cannot decide now
	Failed    Kind = "failed"    // a request about the message failed; Err says why
)

// Event is something that happened. Fields that do not apply are zero.
type Event struct {
	Subject  Subject
	Kind     Kind
	Resource string // path of the blob, entity, lock or queue
	At       time.Time
	Took     time.Duration
	Margin   time.Duration
	Fence    fence.Token
	Holder   string    // the owner that another client has given
	Since    time.Time // when the Holder acquired it, by the service's clock; zero if that is not known
	Message  *Message  // nil unless Subject is Handled
	Running  int       // handlers that run in the Consumer, if Subject is Handled
	Err      error
}

// Emit reports an event, with At set.
func (h Hooks) Emit(ctx context.Context, e Event) {
	if h.Event == nil && h.Logger == nil {
		return
	}
	e.At = time.Now()
	if h.Event != nil {
		h.event(ctx, e)
	}
	if h.Logger != nil {
		h.log(ctx, e)
	}
}

func (e Event) level() slog.Level {
	switch e.Kind {
	case Lost, Poisoned:
		return slog.LevelWarn
	case RenewFailed, Doubted, Assured, Retried, Dropped, Failed:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func (e Event) attrs() []slog.Attr {
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
	if m := e.Message; m != nil {
		attrs = append(attrs, slog.String("message", m.ID), slog.String("key", m.Key), slog.Int("attempt", m.Attempt), slog.Int("deliveries", m.Deliveries))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", azerr.Summary(e.Err)))
	}
	return attrs
}
