package idempotent

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

// poisoned is why a message went to the poison queue, and where it came from.
type poisoned struct {
	Reason     string    `json:"reason"`
	Queue      string    `json:"queue"`
	MessageID  string    `json:"message_id"`
	Inserted   time.Time `json:"inserted"`
	Deliveries int       `json:"deliveries"`
	Encoding   Encoding  `json:"encoding"` // what the original was
}

// maxReason keeps an error's text from taking the place of the body.
const maxReason = 1 << 10

func clip(s string) string {
	if len(s) > maxReason {
		return s[:maxReason] + "…"
	}
	return s
}

// bury puts a copy of a message into the poison queue, where it stays until somebody deletes it. The copy has the
// original's id, so that a second one, made after a crash, is known for what it is. The body is never cut: if it does not
// fit with what is said about it, it goes as it is.
func bury(ctx context.Context, to *azqueue.QueueClient, raw string, e envelope, p poisoned, count func()) error {
	if to == nil {
		return nil
	}
	p.Reason = clip(p.Reason)
	e.Poison, e.Freed = &p, ""
	if e.ID == "" {
		e.ID = p.MessageID
	}
	if e.Sent.IsZero() {
		e.Sent = p.Inserted
	}
	text, err := e.encode(Envelope)
	if err != nil {
		text = raw
	}
	forever := &azqueue.EnqueueMessageOptions{TimeToLive: forEver}
	producer := &Producer{queue: to, path: resource.Path(to.URL()), opts: ProducerOptions{Tries: 6}}
	for made := false; ; made = true {
		count()
		_, err := producer.send(ctx, e.ID, text, forever)
		if !azerr.Has(err, "QueueNotFound") || made {
			return err
		}
		count()
		if _, err := to.Create(plain(ctx), nil); err != nil && azerr.Classify(err).Kind != azerr.Conflict {
			return fmt.Errorf("create the poison queue: %w", err)
		}
	}
}

var forEver = to.Ptr(int32(-1))
