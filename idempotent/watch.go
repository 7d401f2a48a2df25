package idempotent

import (
	"context"
	"log/slog"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
)

// EventKind is the kind of an Event.
type EventKind string

// The kinds.
const (
	Received  EventKind = "received"
	Completed EventKind = "completed" // handled, and deleted
	Duplicate EventKind = "duplicate" // a copy of another message, deleted without being handled
	Retried   EventKind = "retried"   // it will be redelivered; Err says why
	Poisoned  EventKind = "poisoned"  // Err says why
	Dropped   EventKind = "dropped"
	Returned  EventKind = "returned" // unhandled, because the consumer is stopping, the markers cannot be had, or a copy or another session is at work; Err says why
	Lost      EventKind = "lost"     // another consumer may have received it; Err says why
	Failed    EventKind = "failed"   // of the consumer itself: a receive, a deletion; Err says why
)

// Event is something that happened to a message or to the consumer.
type Event struct {
	Kind    EventKind
	Message *Message // nil if the event concerns no message
	Took    time.Duration
	Err     error
}

func (c *Consumer) trace(ctx context.Context, op string, m *Message) (context.Context, func(error)) {
	if c.o.Trace == nil {
		return ctx, func(error) {}
	}
	return c.o.Trace(ctx, op, m)
}

func (c *Consumer) tell(e Event) {
	if c.o.Event != nil {
		c.o.Event(e)
	}
	level := slog.LevelDebug
	switch e.Kind {
	case Poisoned, Lost, Failed:
		level = slog.LevelWarn
	}
	if !c.o.Logger.Enabled(c.settling, level) {
		return
	}
	attrs := []any{"queue", c.path}
	if e.Message != nil {
		attrs = append(attrs, "message", e.Message.ID, "key", e.Message.Key, "attempt", e.Message.Attempt, "deliveries", e.Message.Deliveries)
	}
	if e.Err != nil {
		attrs = append(attrs, "error", azerr.Summary(e.Err))
	}
	c.o.Logger.Log(c.settling, level, "message "+string(e.Kind), attrs...)
}
