package idempotent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

// ErrReceiptUnknown reports that a message was hidden for longer, but the response with its new pop receipt was lost:
// the message can be neither extended nor deleted until it is received again.
var ErrReceiptUnknown = errors.New("the message was hidden, but the response with its new pop receipt was lost")

// Extended is the result of Extend.
type Extended struct {
	PopReceipt  string    // replaces the previous pop receipt
	NextVisible time.Time // by the service's clock
}

// Extend hides a received message for another period, starting now, without sending its text; 0 gives it back. It is
// for callers that receive messages themselves: a Consumer extends its messages automatically. The client must have
// Policy, since the SDK alone would replace the text. Without Policy, Extend sends only a request for a message that
// does not exist, and returns an error that says so.
//
// Errors: ErrOwnershipLost if the pop receipt is not current, because the message was received or extended since, or
// deleted; ErrReceiptUnknown; and the service's error. Transient faults are retried until ctx ends, or for a minute.
// Requests: 1.
func Extend(ctx context.Context, queue *azqueue.QueueClient, messageID, popReceipt string, visibility time.Duration) (Extended, error) {
	switch {
	case queue == nil:
		return Extended{}, errors.New("no queue client")
	case messageID == "" || popReceipt == "":
		return Extended{}, errors.New("extend: no message id or no pop receipt")
	case visibility < 0 || visibility > week || visibility%time.Second != 0:
		return Extended{}, fmt.Errorf("extend: visibility %v is not 0s to 168h in whole seconds", visibility)
	}
	if !hasPolicy(ctx, queue) {
		return Extended{}, errors.New("extend: the queue client lacks idempotent.Policy, without which the message's text would be lost")
	}
	r := newReceipt(queue, messageID, "")
	r.count = func() {}
	r.adopt(popReceipt, time.Now().Add(time.Minute))
	if err := r.extend(ctx, visibility); err != nil {
		if r.unsure && !errors.Is(err, ErrReceiptUnknown) { // nobody else has r
			err = fmt.Errorf("%w: %w", ErrReceiptUnknown, err)
		}
		return Extended{}, err
	}
	return Extended{PopReceipt: r.pop, NextVisible: r.visible}, nil
}

// probed is set in the context of a request that Policy answers by itself. A client without Policy sends that request,
// which is for a message that no queue has.
type probed struct{}

var errProbed = errors.New("the policy is there")

const nobody = "00000000-0000-0000-0000-000000000000"

func hasPolicy(ctx context.Context, queue *azqueue.QueueClient) bool {
	err := once(ctx, func(ctx context.Context) error {
		_, err := queue.UpdateMessage(marked(ctx, probed{}), nobody, "AAAAAAAA", "", nil)
		return err
	})
	return errors.Is(err, errProbed)
}
