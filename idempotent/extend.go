package idempotent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

// ErrReceiptUnknown says that a message was hidden for longer, and that the answer with its new pop receipt was lost: it can
// be neither extended nor deleted until it is received again.
var ErrReceiptUnknown = errors.New("the message was hidden, and the answer with its new pop receipt was lost")

// Extended is the right to a message after Extend.
type Extended struct {
	PopReceipt  string    // the one before is out of force
	NextVisible time.Time // by the service's clock
}

// Extend hides a message that was received for another while, from now on, without sending its text; 0 gives it back. It is
// for those who receive messages themselves: a Consumer extends its messages without being asked. The client must have
// Policy, since the SDK alone would replace the text; without it nothing is sent but a request for a message that does not
// exist, and the error says so.
//
// Errors: ErrOwnershipLost when the pop receipt is not the message's, because it was received or extended since, or deleted;
// ErrReceiptUnknown; and what the service said. Transient faults are met by sending it again until ctx ends, or for a minute.
// Requests: 1.
func Extend(ctx context.Context, queue *azqueue.QueueClient, messageID, popReceipt string, visibility time.Duration) (Extended, error) {
	switch {
	case queue == nil:
		return Extended{}, errors.New("no queue client")
	case messageID == "" || popReceipt == "":
		return Extended{}, errors.New("extend: no message id, or no pop receipt")
	case visibility < 0 || visibility > week || visibility%time.Second != 0:
		return Extended{}, fmt.Errorf("extend: visibility %v is not in 0…168h in whole seconds", visibility)
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

// probed is in the context of a request that Policy answers by itself. Whoever lacks it sends the request, which is for a
// message that no queue has.
type probed struct{}

var errProbed = errors.New("the policy is there")

const nobody = "00000000-0000-0000-0000-000000000000"

func hasPolicy(ctx context.Context, queue *azqueue.QueueClient) bool {
	_, err := queue.UpdateMessage(with(ctx, probed{}), nobody, "AAAAAAAA", "", nil)
	return errors.Is(err, errProbed)
}
