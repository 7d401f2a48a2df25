package idempotent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/resource"
)

// bury puts a copy of a message into the poison queue, which is created if it does not exist, and where the copy never
// expires. An envelope keeps its id there, so that a second copy, made after a crash, can be detected. Facts that the
// copy cannot carry are stored with the markers, if there are any. Requests: 1, and 1 for such facts.
func bury(ctx context.Context, to *azqueue.QueueClient, markers *Markers, raw string, e format.Message, p format.Poison, count func()) error {
	if to == nil {
		return nil
	}
	p.Reason = format.Clip(p.Reason)
	text, carried := format.PoisonText(raw, e, &p)
	producer := &Producer{queue: to, path: resource.Path(to.URL()), opts: ProducerOptions{Tries: 6, CreateQueue: true}, count: count}
	sent, err := producer.send(ctx, p.MessageID, text, &azqueue.EnqueueMessageOptions{TimeToLive: forEver})
	if err != nil || carried || markers == nil {
		return err
	}
	_ = markers.keepFacts(ctx, producer.path, sent.MessageID, p) // for display only: the message is safe without
	return nil
}

var forEver = to.Ptr(int32(-1))

// factsAge is how long the facts of a message that cannot carry them are kept.
const factsAge = 365 * 24 * time.Hour

// buriedFacts is the entity with the facts of a poison message that cannot carry them. It is in the partition of the
// poison queue: Redrive deletes it with the message, and Markers.GC of that queue deletes it when it has expired.
type buriedFacts struct {
	Facts   string    `json:"facts"` // JSON of poisoned
	Expires time.Time `json:"expires"`
}

// factsOf returns the address of the facts of a poison message.
func (k *Markers) factsOf(path, messageID string) tables.Entity[buriedFacts] {
	return tables.NewEntity[buriedFacts](k.table.Client, markers.QueueName(path), "f-"+url.PathEscape(messageID))
}

func (k *Markers) keepFacts(ctx context.Context, path, messageID string, p format.Poison) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = optimistic.Create(ctx, k.factsOf(path, messageID), buriedFacts{Facts: string(text), Expires: time.Now().UTC().Add(factsAge)}, &optimistic.WriteOptions{SendOptions: optimistic.SendOptions{Recreate: true}})
	return err
}

// facts returns the stored facts of a poison message, or nil if there are none.
func (k *Markers) facts(ctx context.Context, path, messageID string) (*format.Poison, error) {
	v, err := optimistic.Read(ctx, k.factsOf(path, messageID), nil)
	if errors.Is(err, optimistic.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p format.Poison
	if err := json.Unmarshal([]byte(v.Value.Facts), &p); err != nil {
		return nil, fmt.Errorf("the facts of message %s are not readable: %w", messageID, err)
	}
	return &p, nil
}
