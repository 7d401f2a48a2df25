package idempotent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
)

// Inbox applies the effect of a message exactly once, if the effect is in one partition of a table: the marker that it was
// applied and the effect itself are one entity group transaction. Neither a second delivery, nor a second copy, nor a
// handler that was overtaken applies it again.
//
// The marker is an entity "azconcinbox-<queue>.<key>" of the partition, and one of its 100 per transaction: the same id in
// another queue is another message. It must stay for as long as a copy of the message can come; Expires says until when that
// is, and GC goes by it.
//
// An Inbox is safe for concurrent use.
type Inbox struct{ table *aztables.Client }

// NewInbox returns an Inbox on a table. It sends no request.
func NewInbox(table *aztables.Client) (*Inbox, error) {
	if table == nil {
		return nil, errors.New("no table client")
	}
	return &Inbox{table: table}, nil
}

// inboxMarker is what the partition remembers of a message.
type inboxMarker struct {
	Message string    `json:"message"`
	Applied time.Time `json:"applied"`
	Expires time.Time `json:"expires"`
}

// inboxPrefix begins the rows of the markers.
const inboxPrefix = "azconcinbox-"

// Apply carries out what change asks for, once for the message: ErrAlreadyApplied says that it was done before, by us or
// by another, and a handler can return that as it is. change must be free of side effects, since it is run again after a
// conflict. Other errors are those of optimistic.Transact; *optimistic.UnknownError leaves it to the next delivery to find
// out.
//
// Requests: 1, and 1 per entity that change reads; a conflict costs as much again.
func (i *Inbox) Apply(ctx context.Context, m *Message, partition string, change func(ctx context.Context, tx *optimistic.Tx) error) error {
	row := inboxPrefix + queueName(m.Queue) + "." + url.PathEscape(m.Key)
	marker := inboxMarker{Message: m.ID, Applied: time.Now().UTC(), Expires: m.Expires.UTC()}
	_, err := optimistic.Transact(ctx, i.table, partition, func(ctx context.Context, tx *optimistic.Tx) error {
		if err := tx.Insert(row, marker); err != nil {
			return err
		}
		return change(ctx, tx)
	}, nil)
	if !errors.Is(err, optimistic.ErrExists) {
		return err
	}
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if !ok || conflict.Resource != i.resource(partition, row) {
		return err // of the effect's own
	}
	return fmt.Errorf("%w: %s", ErrAlreadyApplied, m.Key)
}

func (i *Inbox) resource(partition, row string) string {
	return optimistic.TableEntity[inboxMarker](i.table, partition, row).Resource()
}
