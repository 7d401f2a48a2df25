package idempotent

import (
	"context"
	"fmt"
	"time"
)

// Message is a message as a handler gets it.
type Message struct {
	// ID is the service's. It stays the same when the message is delivered again.
	ID string

	// Key is what duplicates are known by: the id that the sender has given it, or ID when it carries none.
	Key string

	Queue string // the queue's path
	Body  []byte

	// Headers are those of Outgoing. Nil for messages that are no envelopes.
	Headers map[string]string

	// Attempt counts handler runs that have failed, and this one: 1 for the first. For messages that are no envelopes, which
	// cannot carry the count, it is Deliveries; with Sessions, less those for which it was not handled.
	Attempt int

	// Deliveries counts how often the service has handed the message out, for whatever reason.
	Deliveries int

	LastError string    // of the attempt before, if the message carries it
	Sent      time.Time // by the sender's clock; zero if the message does not say
	Inserted  time.Time // by the service's clock
	Expires   time.Time // when the service throws it away

	result   []byte
	stopping context.Context // ends when the consumer begins to stop
}

// Stopping returns a channel that is closed when the Consumer begins to stop, as the context of Run has ended. The handler's
// own context ends SoftStop later: a handler that waits for something can end here, such as with Postpone.
func (m *Message) Stopping() <-chan struct{} {
	if m.stopping == nil {
		return nil
	}
	return m.stopping.Done()
}

// SetResult has a result of up to 64 KiB kept with the message's marker, for DedupeComplete; otherwise it goes nowhere. It
// belongs to the handler, and is not safe for concurrent use.
func (m *Message) SetResult(result []byte) { m.result = result }

// Token is a fencing token: of two deliveries of the same message the later one has the larger Delivery. Whatever stores
// it beside an effect can refuse a handler that was overtaken.
type Token struct {
	MessageID string
	Delivery  int
}

// Token returns the message's fencing token.
func (m *Message) Token() Token { return Token{m.ID, m.Deliveries} }

func (t Token) String() string { return fmt.Sprintf("%s/%d", t.MessageID, t.Delivery) }

// Handler handles a message. Its context ends when the message is not ours any more (ErrOwnershipLost), when the
// consumer is stopping (ErrStopping), or when HandlerTimeout is over; it must return soon then. Nil deletes the message; an
// error has it delivered again, unless RetryAfter, Postpone, Poison or Drop say otherwise.
type Handler func(ctx context.Context, m *Message) error
