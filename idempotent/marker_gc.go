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
	"github.com/azconc/azconc/pkg/azerr"
)

// GC deletes the markers of a queue whose messages cannot come any more, and returns how many; those of messages that never
// expire stay. Errors: why markers cannot be listed or deleted; what was deleted until then is counted. Requests: 1 per 1000
// markers of the queue, and 1 per 100 that are deleted.
func (k *Markers) GC(ctx context.Context, queue string) (deleted int, err error) {
	// The day follows the name, after a hyphen; "." comes next after that, and is in no name.
	return deleteExpired(ctx, k.table, "PartitionKey ge "+quoted(queue)+" and PartitionKey lt "+quoted(queue+"."), func(key markerKey) bool {
		day, ok := strings.CutPrefix(key.partition, queue)
		return ok && (day == "" || len(day) == len("-20060102") && strings.Trim(day[1:], "0123456789") == "")
	})
}

// GC deletes what a partition remembers of messages that cannot come any more, and returns how many those were; of messages
// that never expire it stays. Errors: why it cannot be listed or deleted; what was deleted until then is counted. Requests: 1
// per 1000 messages that the partition remembers, and 1 per 100 that are deleted.
func (i *Inbox) GC(ctx context.Context, partition string) (deleted int, err error) {
	filter := "PartitionKey eq " + quoted(partition) + " and RowKey ge " + quoted(inboxPrefix) + " and RowKey lt " + quoted(strings.TrimSuffix(inboxPrefix, "-")+".")
	return deleteExpired(ctx, i.table, filter, func(key markerKey) bool { return strings.HasPrefix(key.row, inboxPrefix) })
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// deleteExpired deletes the markers that the filter finds, are meant, and are of messages that cannot come any more. One
// that is written meanwhile stays.
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

// deleteMarkers deletes markers of one partition in one transaction, but for those that are not as they were found.
func deleteMarkers(ctx context.Context, table *aztables.Client, partition string, keys []markerKey) (deleted int, err error) {
	for len(keys) > 0 {
		_, err := optimistic.Transact(ctx, table, partition, func(_ context.Context, tx *optimistic.Tx) error {
			for _, key := range keys {
				if err := tx.DeleteVersion(key.row, key.etag); err != nil {
					return err
				}
			}
			return nil
		}, &optimistic.TransactOptions{Attempts: 1})
		if err == nil || errors.Is(err, optimistic.ErrOutcomeUnknown) { // what is left of an unknown one the next GC finds
			return len(keys), nil
		}
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		left := slices.DeleteFunc(slices.Clone(keys), func(key markerKey) bool {
			return ok && conflict.Resource == optimistic.TableEntity[marker](table, partition, key.row).Resource()
		})
		if len(left) == len(keys) {
			return 0, err
		}
		keys = left
	}
	return 0, nil
}

// markerKey names a marker.
type markerKey struct {
	partition, row string
	etag           azcore.ETag
}

// expiredMarker reads an entity and tells whether it is a marker of a message that cannot come any more.
func expiredMarker(raw []byte, now time.Time) (markerKey, bool, error) {
	var e struct {
		PartitionKey, RowKey string
		ETag                 azcore.ETag `json:"odata.etag"`
		Expires              time.Time   `json:"expires"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return markerKey{}, false, fmt.Errorf("a marker is not readable: %w", err)
	}
	// A message can be under way for as long as its last visibility timeout, which never reaches beyond its end; a day more
	// covers clocks.
	gone := !e.Expires.IsZero() && now.After(e.Expires.Add(24*time.Hour))
	return markerKey{e.PartitionKey, e.RowKey, e.ETag}, gone, nil
}
