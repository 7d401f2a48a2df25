package idempotent

import (
	"cmp"
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
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/session"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
)

// GC deletes the markers of a queue whose messages can no longer arrive, and returns how many it deleted; markers of
// messages that never expire are kept. Errors: why markers cannot be listed or deleted; markers deleted before the
// error are counted. Requests: 1 per 1000 markers of the queue, and 1 per 100 deleted.
func (k *Markers) GC(ctx context.Context, queue string) (deleted int, err error) {
	// The day follows the name, after a hyphen; "." is the next character after the hyphen and occurs in no name.
	return deleteExpired(ctx, k.table.Client, "PartitionKey ge "+markers.Quoted(queue)+" and PartitionKey lt "+markers.Quoted(queue+"."), func(key markerKey) bool {
		day, ok := strings.CutPrefix(key.partition, queue)
		return ok && (day == "" || len(day) == len("-20060102") && strings.Trim(day[1:], "0123456789") == "")
	})
}

// GC deletes a partition's markers of messages that can no longer arrive, and returns how many it deleted; markers of
// messages that never expire are kept. Errors: why markers cannot be listed or deleted; markers deleted before the
// error are counted. Requests: 1 per 1000 markers in the partition, and 1 per 100 deleted.
func (i *Inbox) GC(ctx context.Context, partition string) (deleted int, err error) {
	filter := "PartitionKey eq " + markers.Quoted(partition) + " and RowKey ge " + markers.Quoted(inboxPrefix) + " and RowKey lt " + markers.Quoted(strings.TrimSuffix(inboxPrefix, "-")+".")
	return deleteExpired(ctx, i.table, filter, func(key markerKey) bool { return strings.HasPrefix(key.row, inboxPrefix) })
}

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
			return ok && conflict.Resource == tables.NewEntity[markers.Marker](table, partition, key.row).Resource()
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

// GC deletes the results that were stored longer ago than age, by the clock of the process that stored them, and
// returns how many it deleted. A key whose result is deleted is treated as never used: age must be longer than any
// retry may take. Results of Lockers with another container or prefix are kept. The empty lock blobs under "once/" are
// kept too: Locker.GC deletes them.
//
// Errors: why results cannot be listed or deleted; results deleted before the error are counted. Requests: 1 per 1000
// results that old, and 1 per 100 deleted.
func (o *Once) GC(ctx context.Context, age time.Duration) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("Once.GC: an age of %v would delete results that are still in use", age)
	}
	before := time.Now().Add(-age).UTC().Format("2006-01-02T15:04:05.0000000Z")
	filter := "PartitionKey eq " + markers.Quoted(o.partition) + " and at lt datetime'" + before + "'"
	var old []markerKey
	list := &aztables.ListEntitiesOptions{Filter: &filter, Select: to.Ptr("PartitionKey,RowKey"), Format: to.Ptr(aztables.MetadataFormatFull)} // with ETags
	for pages := o.table.NewListEntitiesPager(list); pages.More(); {
		page, err := pages.NextPage(ctx)
		if markers.Missing(err) {
			return 0, nil
		}
		if err != nil {
			return 0, azerr.Clean(err)
		}
		for _, raw := range page.Entities {
			var e struct {
				RowKey string
				ETag   azcore.ETag `json:"odata.etag"`
			}
			if err := json.Unmarshal(raw, &e); err != nil {
				return 0, fmt.Errorf("a result is not readable: %w", err)
			}
			old = append(old, markerKey{partition: o.partition, row: e.RowKey, etag: e.ETag})
		}
	}
	for batch := range slices.Chunk(old, 100) {
		n, err := deleteMarkers(ctx, o.table, o.partition, batch)
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// GC deletes the bodies whose messages expired longer ago than age, and returns how many. The metadata of a body says when that
// is: a day after the TTL of the latest message that needs it. A message in the poison queue needs its body for longer, which GC
// does not know: age must be longer than poison messages are kept, and a TTL longer than that if they are redriven. The age of a
// body begins when it was stored if its message never expires, or if an earlier version stored it; age must then be longer than
// the message can live. A blob that is written meanwhile stays.
//
// A lifecycle rule of the account can delete blobs whose name begins with "<container>/azconcclaim/" so many days after their
// last modification: as many as the longest TTL and age together.
//
// Errors: why blobs cannot be listed or deleted; blobs deleted before the error are counted. Requests: 1 per 5000
// blobs, and 1 per blob deleted.
func (k *ClaimCheck) GC(ctx context.Context, age time.Duration) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("ClaimCheck.GC: an age of %v would delete bodies that are needed", age)
	}
	for pages := k.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: to.Ptr(claimPrefix), Include: container.ListBlobsInclude{Metadata: true}}); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return deleted, fmt.Errorf("list %s: %w", k.path, azerr.Clean(err))
		}
		before := cmp.Or(ptr.Value(page.Date), time.Now()).Add(-age) // by the clock of the blobs' timestamps
		for _, b := range page.Segment.BlobItems {
			from := ptr.Value(b.Properties.LastModified)
			if expires, _ := expiryIn(b.Metadata); expires.After(from) {
				from = expires
			}
			if from.IsZero() || !from.Before(before) {
				continue
			}
			etag := azcore.ETag(`"` + strings.Trim(string(ptr.Value(b.Properties.ETag)), `"`) + `"`) // listed without quotes
			_, err := k.container.NewBlobClient(ptr.Value(b.Name)).Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{
				ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}})
			switch out := azerr.Classify(err); {
			case err == nil:
				deleted++
			case out.Kind == azerr.NotFound, out.Kind == azerr.Conflict: // deleted already, or the message was sent again
			default:
				return deleted, fmt.Errorf("delete %s/%s: %w", k.path, ptr.Value(b.Name), azerr.Clean(err))
			}
		}
	}
	return deleted, nil
}

// sessionAge is the minimum age of an unleased blob for GC to delete it: a session begins without a lease.
const sessionAge = time.Hour

// GC deletes the blobs of sessions that crashed, and returns how many it deleted; a session that ends normally deletes
// its own. Others consider a session without a blob to be over, which it is. A blob that is leased, or younger than an
// hour, is kept. A lifecycle rule of the account does the same for free: delete blobs whose names begin with
// "<container>/azconcsession/"; the service does not delete leased ones.
//
// Errors: why blobs cannot be listed or deleted; blobs deleted before the error are counted. Requests: 1 per 5000
// blobs, and 1 per blob deleted.
func (k *Sessions) GC(ctx context.Context) (deleted int, err error) {
	for pages := k.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: to.Ptr(session.Prefix)}); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return deleted, fmt.Errorf("list %s: %w", k.path, azerr.Clean(err))
		}
		before := cmp.Or(ptr.Value(page.Date), time.Now()).Add(-sessionAge) // by the clock of the blobs' timestamps
		for _, b := range page.Segment.BlobItems {
			if b.Properties.LastModified == nil || !b.Properties.LastModified.Before(before) || !lease.State(ptr.Value(b.Properties.LeaseState)).Free() {
				continue
			}
			_, err := k.container.NewBlobClient(ptr.Value(b.Name)).Delete(ctx, nil)
			switch out := azerr.Classify(err); {
			case err == nil:
				deleted++
			case out.Kind == azerr.NotFound, out.Kind == azerr.Held:
			default:
				return deleted, fmt.Errorf("delete %s/%s: %w", k.path, ptr.Value(b.Name), azerr.Clean(err))
			}
		}
	}
	return deleted, nil
}
