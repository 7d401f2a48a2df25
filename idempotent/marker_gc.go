package idempotent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
)

// GC deletes the markers of a queue whose messages can no longer arrive, and returns how many it deleted; markers of
// messages that never expire are kept. Errors: why markers cannot be listed or deleted; markers deleted before the
// error are counted. Requests: 1 per 1000 markers of the queue, and 1 per 100 deleted.
func (k *Markers) GC(ctx context.Context, queue string) (deleted int, err error) {
	// The day follows the name, after a hyphen; "." is the next character after the hyphen and occurs in no name.
	return deleteExpired(ctx, k.table, "PartitionKey ge "+quoted(queue)+" and PartitionKey lt "+quoted(queue+"."), func(key markerKey) bool {
		day, ok := strings.CutPrefix(key.partition, queue)
		return ok && (day == "" || len(day) == len("-20060102") && strings.Trim(day[1:], "0123456789") == "")
	})
}

// GC deletes a partition's markers of messages that can no longer arrive, and returns how many it deleted; markers of
// messages that never expire are kept. Errors: why markers cannot be listed or deleted; markers deleted before the
// error are counted. Requests: 1 per 1000 markers in the partition, and 1 per 100 deleted.
func (i *Inbox) GC(ctx context.Context, partition string) (deleted int, err error) {
	filter := "PartitionKey eq " + quoted(partition) + " and RowKey ge " + quoted(inboxPrefix) + " and RowKey lt " + quoted(strings.TrimSuffix(inboxPrefix, "-")+".")
	return deleteExpired(ctx, i.table, filter, func(key markerKey) bool { return strings.HasPrefix(key.row, inboxPrefix) })
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// deleteExpired deletes the markers that match the filter and belong to messages that can no longer arrive. A marker
// that is written meanwhile is kept.
func deleteExpired(ctx context.Context, table *aztables.Client, filter string, meant func(markerKey) bool) (deleted int, err error) {
	expired := map[string][]markerKey{}
	now := time.Now().UTC()
	list := &aztables.ListEntitiesOptions{Filter: &filter, Format: to.Ptr(aztables.MetadataFormatFull)} // with ETags
	for pages := table.NewListEntitiesPager(list); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return deleted, azerr.Clean(err)
		}
		for _, raw := range page.Entities {
			key, gone, err := expiredMarker(raw, now)
			if err != nil {
				return deleted, err
			}
			if gone && meant(key) {
				expired[key.partition] = append(expired[key.partition], key)
			}
		}
	}
	for partition, keys := range expired {
		for batch := range slices.Chunk(keys, 100) {
			n, err := deleteMarkers(ctx, table, partition, batch)
			if deleted += n; err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

// deleteMarkers deletes markers of one partition in one transaction, except those that have changed since they were
// listed.
func deleteMarkers(ctx context.Context, table *aztables.Client, partition string, keys []markerKey) (deleted int, err error) {
	for len(keys) > 0 {
		_, err := tables.Transact(ctx, table, partition, func(_ context.Context, tx *tables.Tx) error {
			for _, key := range keys {
				if err := tx.DeleteVersion(key.row, key.etag); err != nil {
					return err
				}
			}
			return nil
		}, &tables.TransactOptions{Attempts: 1})
		if err == nil || errors.Is(err, optimistic.ErrOutcomeUnknown) { // what is left of an unknown one the next GC finds
			return len(keys), nil
		}
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		left := slices.DeleteFunc(slices.Clone(keys), func(key markerKey) bool {
			return ok && conflict.Resource == tables.NewEntity[marker](table, partition, key.row).Resource()
		})
		if len(left) == len(keys) {
			return 0, err
		}
		keys = left
	}
	return 0, nil
}

// markerKey identifies a marker.
type markerKey struct {
	partition, row string
	etag           azcore.ETag
}

// expiredMarker decodes an entity and reports whether it is a marker of a message that can no longer arrive.
func expiredMarker(raw []byte, now time.Time) (markerKey, bool, error) {
	var e struct {
		PartitionKey, RowKey string
		ETag                 azcore.ETag `json:"odata.etag"`
		Expires              time.Time   `json:"expires"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return markerKey{}, false, fmt.Errorf("a marker is not readable: %w", err)
	}
	// A message can exist for as long as its last visibility timeout, which never extends beyond its expiry; a further
	// day covers clock differences.
	gone := !e.Expires.IsZero() && now.After(e.Expires.Add(24*time.Hour))
	return markerKey{e.PartitionKey, e.RowKey, e.ETag}, gone, nil
}
