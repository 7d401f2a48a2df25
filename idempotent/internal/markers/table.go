package markers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/wire"
)

// Table is a table of markers. It is safe for concurrent use.
type Table struct {
	Client *aztables.Client
	Path   string
	Hooks  observe.Hooks
}

// NewTable returns the markers in a table. hooks receive its requests.
func NewTable(client *aztables.Client, hooks observe.Hooks) *Table {
	path, _, _ := strings.Cut(tables.NewEntity[Marker](client, "p", "r").Resource(), "/")
	return &Table{client, path, hooks}
}

// Observed returns the same table with other hooks.
func (t *Table) Observed(hooks observe.Hooks) *Table { return &Table{t.Client, t.Path, hooks} }

func (t *Table) wire() wire.Wire { return wire.Observed(t.Hooks, t.Path, nil) }

// Entity returns the marker at a row.
func (t *Table) Entity(partition, row string) tables.Entity[Marker] {
	return tables.NewEntity[Marker](t.Client, partition, row)
}

// Tries bounds how often a request is sent: during an outage, probes follow.
const Tries = 2

// Sending adds the spans of this table's hooks to how a request of package optimistic is sent. Its events, such as conflicts, are not
// about messages, and are not reported.
func (t *Table) Sending(o optimistic.SendOptions) optimistic.SendOptions {
	o.Hooks.Span = t.Hooks.Span
	return o
}

// Reading configures how markers are read.
func (t *Table) Reading() optimistic.SendOptions {
	return t.Sending(optimistic.SendOptions{Tries: Tries, TryTimeout: send.TryTimeout, NoLineage: true})
}

// Rewriting configures how markers are changed.
func (t *Table) Rewriting() optimistic.SendOptions {
	return t.Sending(optimistic.SendOptions{Tries: Tries, TryTimeout: send.TryTimeout})
}

// Find returns an entity, if it exists. That the table does not is an error. Requests: 1.
func Find[T any](ctx context.Context, at tables.Entity[T], o optimistic.SendOptions) (value T, found bool, err error) {
	v, err := optimistic.Read(ctx, at, &optimistic.ReadOptions{SendOptions: o})
	switch {
	case errors.Is(err, optimistic.ErrNotFound) && !Missing(err):
		return value, false, nil
	case err != nil:
		return value, false, err
	}
	return v.Value, true, nil
}

// Write is a marker to be written.
type Write struct {
	Row    string
	Marker Marker
}

// Submit writes markers of one partition in one transaction, and creates the table if it does not exist. Repeating it
// is harmless: an insert that was applied is recognized by its owner. Requests: 1.
func (t *Table) Submit(ctx context.Context, partition string, how aztables.TransactionType, writes []Write) error {
	actions := make([]aztables.TransactionAction, len(writes))
	for i, w := range writes {
		text, err := w.Marker.Encode(partition, w.Row)
		if err != nil {
			return err
		}
		actions[i] = aztables.TransactionAction{ActionType: how, Entity: text}
	}
	for created := false; ; created = true {
		err := send.Resend(ctx, t.wire(), "Entity Group Transaction", Tries, send.TryTimeout, func(ctx context.Context) error {
			_, err := tables.Submit(ctx, t.Client, actions)
			return err
		})
		if created || !Missing(err) {
			return err
		}
		if err := t.Create(ctx); err != nil {
			return err
		}
	}
}

// Create creates the table, unless it exists. Requests: 1.
func (t *Table) Create(ctx context.Context) error {
	err := send.Resend(ctx, t.wire(), "Create Table", Tries, send.TryTimeout, func(ctx context.Context) error {
		_, err := t.Client.CreateTable(ctx, nil)
		return err
	})
	if err != nil && !azerr.Has(err, "TableAlreadyExists") {
		return fmt.Errorf("create table %s: %w", t.Path, err)
	}
	return nil
}

// Probe asks whether the table answers. A response that the entity does not exist is an answer. Requests: 1.
func (t *Table) Probe(ctx context.Context) error {
	err := t.wire().Once(ctx, "Get Entity", 0, func(ctx context.Context) error {
		_, err := t.Client.GetEntity(ctx, "azconcprobe", "azconcprobe", nil)
		return err
	})
	if err == nil || azerr.Classify(err).Kind == azerr.NotFound && !Missing(err) {
		return nil
	}
	return azerr.Clean(err)
}

// Missing reports whether the table does not exist, in which case nothing is recorded.
func Missing(err error) bool { return azerr.Has(err, "TableNotFound") }
