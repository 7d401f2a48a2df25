package idempotent

import (
	"context"
	"encoding/json"
	"fmt"
)

// Payload converts between values of a type and the bodies of messages. One Payload, shared by the programs that send and those
// that handle, describes a kind of message:
//
//	var orders idempotent.Payload[Order]
//
//	m, err := orders.Outgoing(order)               // to send
//	consumer, err := idempotent.NewConsumer(queue, orders.Handler(func(ctx context.Context, m *idempotent.Message, o Order) error {
//		…
//	}), opts)                                      // to handle
//
// The zero value uses JSON, of which fields that T does not have are ignored. A Payload is safe for concurrent use if its
// functions are.
type Payload[T any] struct {
	// Encode makes a body of a value. Defaults to json.Marshal.
	Encode func(v T) ([]byte, error)

	// Decode makes a value of a body. Defaults to json.Unmarshal.
	Decode func(body []byte) (T, error)
}

// Outgoing returns a message with a value as its body, to be sent by a Producer; its other fields are zero. The error is that of
// Encode. It sends no request.
func (p Payload[T]) Outgoing(v T) (Outgoing, error) {
	encode := p.Encode
	if encode == nil {
		encode = func(v T) ([]byte, error) { return json.Marshal(v) }
	}
	body, err := encode(v)
	if err != nil {
		return Outgoing{}, fmt.Errorf("encode a %T: %w", v, err)
	}
	return Outgoing{Body: body}, nil
}

// Handler returns a Handler that decodes the body and calls handle with the value. A body that cannot be decoded is poison, since
// it would fail again however often it is tried: its message goes to the poison queue at once, with the error of Decode as the
// reason, and handle is not called.
func (p Payload[T]) Handler(handle func(ctx context.Context, m *Message, v T) error) Handler {
	decode := p.Decode
	if decode == nil {
		decode = func(body []byte) (v T, err error) {
			err = json.Unmarshal(body, &v)
			return v, err
		}
	}
	return func(ctx context.Context, m *Message) error {
		v, err := decode(m.Body)
		if err != nil {
			return Poison(fmt.Errorf("the body is no %T: %w", v, err))
		}
		return handle(ctx, m, v)
	}
}
