package markers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

// factsAge is how long the facts of a message that cannot carry them are kept.
const factsAge = 365 * 24 * time.Hour

// facts is the entity with the facts of a poison message that cannot carry them. It is in the partition of the
// poison queue: redrive.Run deletes it with the message, and Markers.GC of that queue deletes it when it has expired.
type facts struct {
	Facts   string    `json:"facts"` // JSON of poisoned
	Expires time.Time `json:"expires"`
}

// factsOf returns the address of the facts of a poison message.
func (t *Table) factsOf(path, messageID string) tables.Entity[facts] {
	return tables.NewEntity[facts](t.Client, QueueName(path), "f-"+url.PathEscape(messageID))
}

// KeepFacts stores the facts of a poison message. Requests: 1.
func (t *Table) KeepFacts(ctx context.Context, path, messageID string, p format.Poison) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = optimistic.Create(ctx, t.factsOf(path, messageID), facts{Facts: string(text), Expires: time.Now().UTC().Add(factsAge)}, &optimistic.WriteOptions{SendOptions: t.Sending(optimistic.SendOptions{Recreate: true})})
	return err
}

// Facts returns the stored facts of a poison message, or nil if there are none. Requests: 1.
func (t *Table) Facts(ctx context.Context, path, messageID string) (*format.Poison, error) {
	v, err := optimistic.Read(ctx, t.factsOf(path, messageID), &optimistic.ReadOptions{SendOptions: t.Sending(optimistic.SendOptions{})})
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

// DropFacts deletes the facts of a message that has left the poison queue. If it fails, they expire. Requests: 1.
func (t *Table) DropFacts(ctx context.Context, path, messageID string) {
	_, _ = optimistic.Delete(ctx, t.factsOf(path, messageID), optimistic.State{}, &optimistic.WriteOptions{SendOptions: t.Sending(optimistic.SendOptions{})})
}
