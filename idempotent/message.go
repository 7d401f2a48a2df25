package idempotent

import (
	"context"
	"fmt"
	"time"
)

// Message is a message as passed to a handler.
type Message struct {
	// ID is the id assigned by the service. It stays the same when the message is redelivered.
	ID string

	// Key identifies duplicates: the id assigned by the sender, or ID if the message carries none.
	Key string

	Queue string // the queue's path
	Body  []byte

	// Headers are those of Outgoing. Nil for messages that are not envelopes.
	Headers map[string]string

	// Attempt counts the handler runs that have failed, plus this one: 1 for the first. For messages that are not
	// envelopes, which cannot carry the count, it is Deliveries; with Sessions, minus the deliveries for which it was
	// not handled.
	Attempt int

	// Deliveries counts how often the service has delivered the message, for whatever reason.
	Deliveries int

	LastError string    // of the previous attempt, if the message carries it
	Sent      time.Time // by the sender's clock; zero if the message does not say
	Inserted  time.Time // by the service's clock
	Expires   time.Time // when the service discards it

	result   []byte
	stopping context.Context // ends when the consumer begins to stop
}

// Stopping returns a channel that is closed when the Consumer begins to stop, after the context of Run has ended. The
// handler's own context ends SoftStop later: a handler that waits can return early, for example with Postpone.
func (m *Message) Stopping() <-chan struct{} {
	if m.stopping == nil {
		return nil
	}
	return m.stopping.Done()
}

// SetResult stores a result of up to 64 KiB with the message's marker, for DedupeComplete; otherwise it has no effect.
// It is for the handler, and is not safe for concurrent use.
func (m *Message) SetResult(result []byte) { m.result = result }

// Token is a fencing token: of two deliveries of the same message the later one has the larger Delivery. A resource
// that stores it with an effect can refuse a handler that was overtaken.
type Token struct {
	MessageID string
	Delivery  int
}

// Token returns the message's fencing token.
func (m *Message) Token() Token { return Token{m.ID, m.Deliveries} }

func (t Token) String() string { return fmt.Sprintf("%s/%d", t.MessageID, t.Delivery) }

// Handler handles a message. Its context ends when the consumer no longer holds the message (ErrOwnershipLost), when
// the consumer is stopping (ErrStopping), or when HandlerTimeout has passed; the handler must return soon then. Nil
// deletes the message; an error redelivers it, unless it is the result of RetryAfter, Postpone, Poison or Drop.
type Handler func(ctx context.Context, m *Message) error
