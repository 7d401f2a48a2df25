package markers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
)

// DeleteExpired deletes the markers that match the filter and belong to messages that can no longer arrive. A marker
// that is written meanwhile is kept.
func DeleteExpired(ctx context.Context, table *Table, filter string, meant func(Key) bool) (deleted int, err error) {
	expired := map[string][]Key{}
	now := time.Now().UTC()
	list := &aztables.ListEntitiesOptions{Filter: &filter, Format: to.Ptr(aztables.MetadataFormatFull)} // with ETags
	for pages := table.Client.NewListEntitiesPager(list); pages.More(); {
		page, err := send.Page(ctx, table.wire(), queryEntities, pages.NextPage)
		if err != nil {
			return deleted, azerr.Clean(err)
		}
		for _, raw := range page.Entities {
			key, gone, err := expiredMarker(raw, now)
			if err != nil {
				return deleted, err
			}
			if gone && meant(key) {
				expired[key.Partition] = append(expired[key.Partition], key)
			}
		}
	}
	for partition, keys := range expired {
		for batch := range slices.Chunk(keys, 100) {
			n, err := DeleteVersions(ctx, table, partition, batch)
			if deleted += n; err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

// DeleteVersions deletes markers of one partition in one transaction, except those that have changed since they were
// listed.
func DeleteVersions(ctx context.Context, table *Table, partition string, keys []Key) (deleted int, err error) {
	for len(keys) > 0 {
		err := deleteAll(ctx, table, partition, keys)
		if err == nil || errors.Is(err, optimistic.ErrOutcomeUnknown) { // what is left of an unknown one the next GC finds
			return len(keys), nil
		}
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		left := slices.DeleteFunc(slices.Clone(keys), func(key Key) bool {
			return ok && conflict.Resource == table.Entity(partition, key.Row).Resource()
		})
		if len(left) == len(keys) {
			return 0, err
		}
		keys = left
	}
	return 0, nil
}

// deleteAll deletes up to 100 entities of one partition, or none if one of them has changed.
func deleteAll(ctx context.Context, table *Table, partition string, keys []Key) error {
	_, err := tables.Transact(ctx, table.Client, partition, func(_ context.Context, tx *tables.Tx) error {
		for _, key := range keys {
			if err := tx.DeleteVersion(key.Row, key.ETag); err != nil {
				return err
			}
		}
		return nil
	}, &tables.TransactOptions{Attempts: 1, SendOptions: table.Sending(optimistic.SendOptions{Tries: Tries, TryTimeout: send.TryTimeout})})
	return err
}

// Slack is how long a marker is kept after its message has expired. A message can exist for as long as its last visibility timeout,
// which never extends beyond its expiry; a day covers clock differences.
const Slack = 24 * time.Hour

// Key identifies a marker.
type Key struct {
	Partition, Row string
	ETag           azcore.ETag
}

// expiredMarker decodes an entity and reports whether it is a marker of a message that can no longer arrive.
func expiredMarker(raw []byte, now time.Time) (Key, bool, error) {
	var e struct {
		PartitionKey, RowKey string
		ETag                 azcore.ETag `json:"odata.etag"`
		Expires              time.Time   `json:"expires"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Key{}, false, fmt.Errorf("a marker is not readable: %w", err)
	}
	gone := !e.Expires.IsZero() && now.After(e.Expires.Add(Slack))
	return Key{e.PartitionKey, e.RowKey, e.ETag}, gone, nil
}

// Listed returns the entities that match the filter. A table that does not exist has none.
func Listed(ctx context.Context, table *Table, filter string) (keys []Key, err error) {
	err = Query(ctx, table, filter, "PartitionKey,RowKey", func(raw []byte) error {
		var e struct {
			PartitionKey, RowKey string
			ETag                 azcore.ETag `json:"odata.etag"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("an entity is not readable: %w", err)
		}
		keys = append(keys, Key{e.PartitionKey, e.RowKey, e.ETag})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// Query calls each with every entity that matches the filter, with the properties in properties, a list with commas, and its ETag.
// A table that does not exist has none. Requests: 1 per 1000 entities.
func Query(ctx context.Context, table *Table, filter, properties string, each func(raw []byte) error) error {
	list := &aztables.ListEntitiesOptions{Filter: &filter, Select: &properties, Format: to.Ptr(aztables.MetadataFormatFull)} // with ETags
	for pages := table.Client.NewListEntitiesPager(list); pages.More(); {
		page, err := send.Page(ctx, table.wire(), queryEntities, pages.NextPage)
		if Missing(err) {
			return nil
		}
		if err != nil {
			return azerr.Clean(err)
		}
		for _, raw := range page.Entities {
			if err := each(raw); err != nil {
				return err
			}
		}
	}
	return nil
}

const queryEntities = "Query Entities"
