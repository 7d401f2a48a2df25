// Package claimcheck stores message bodies that are too large for a queue in blobs.
//
//	bodies, err := claimcheck.New(container, nil)
//	producer, err := idempotent.NewProducer(queue, &idempotent.ProducerOptions{ClaimCheck: bodies})
//	consumer, err := idempotent.NewConsumer(queue, handle, &idempotent.ConsumerOptions{Markers: markers, ClaimCheck: bodies})
package claimcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/idempotent/internal/bodies"
	"github.com/azconc/azconc/pkg/observe"
)

// ClaimCheck stores bodies that do not fit into a message (REST: "Put Message", 64 KiB, of which 128 bytes are kept for its
// counts) in blobs of a container. A Producer with a ClaimCheck compresses a body that is too large. If it is still too
// large, the Producer stores the body first and sends a message with its location, length and SHA-256. A Consumer with a
// ClaimCheck fetches the body before the handler runs, and deletes the blob only after the message was handled and deleted.
//
// A blob is named after its queue, its message's id and its content, so the same message has the same blob however
// often it is sent. For copies this means that the body is deleted with the first copy that is handled. Markers, and
// the modes based on them, detect the other copies without reading them; without Markers they go to the poison queue,
// because they cannot be distinguished from messages whose body was deleted by another client.
//
// A blob remains if the message was never sent, is poison, expired unread or was a late copy, if the marker that it was
// handled could not be written, or if the deletion of the blob failed. Its metadata says when its message expires. See GC.
//
// A ClaimCheck is safe for concurrent use.
type ClaimCheck struct{ *store }

// store has the methods of a ClaimCheck that name types of internal packages, for Producers and Consumers.
type store = bodies.Store

// Options configures a ClaimCheck. The zero value selects the defaults.
type Options struct {
	// MaxBody is the maximum size of a body, in bytes: larger ones are neither sent nor read. It bounds the memory per
	// handler, which is that of the body; to send one takes up to as much again, to compress it. Defaults to 64 MiB.
	MaxBody int

	// Hooks receive the requests of GC; a Producer and a Consumer have their own. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// New returns a ClaimCheck on a container, which must exist. It sends no request.
func New(c *container.Client, opts *Options) (*ClaimCheck, error) {
	if c == nil {
		return nil, errors.New("no container client")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.MaxBody < 0 {
		return nil, fmt.Errorf("claimcheck: Options.MaxBody: %d is negative", o.MaxBody)
	}
	return &ClaimCheck{bodies.New(c, cmp.Or(o.MaxBody, 64<<20), o.Hooks)}, nil
}

// GC deletes the bodies whose messages expired longer ago than age, and returns how many. The metadata of a body says when that
// is: a day after the TTL of the latest message that needs it. A message in the poison queue needs its body for longer, which GC
// does not know: age must be longer than poison messages are kept, and a TTL longer than that if they are redriven. The age of a
// body begins when it was stored if its message never expires, or the blob does not say; age must then be longer than
// the message can live. A blob that is written meanwhile stays.
//
// A lifecycle rule of the account can delete blobs whose name begins with "<container>/azconcclaim/" so many days after their
// last modification: as many as the longest TTL and age together.
//
// Errors: why blobs cannot be listed or deleted; blobs deleted before the error are counted. Requests: 1 per 5000
// blobs, and 1 per blob deleted.
func (k *ClaimCheck) GC(ctx context.Context, age time.Duration) (deleted int, err error) {
	return k.store.GC(ctx, age)
}
