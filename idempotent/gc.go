package idempotent

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/idempotent/internal/session"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// GC deletes the markers of a queue whose messages can no longer arrive, and returns how many it deleted; markers of
// messages that never expire are kept. Errors: why markers cannot be listed or deleted; markers deleted before the
// error are counted. Requests: 1 per 1000 markers of the queue, and 1 per 100 deleted.
func (k *Markers) GC(ctx context.Context, queue string) (deleted int, err error) {
	// The day follows the name, after a hyphen; "." is the next character after the hyphen and occurs in no name.
	return markers.DeleteExpired(ctx, k.table, "PartitionKey ge "+markers.Quoted(queue)+" and PartitionKey lt "+markers.Quoted(queue+"."), of(queue))
}

// of returns which entities are markers of a queue.
func of(queue string) func(markers.Key) bool {
	return func(key markers.Key) bool {
		day, ok := strings.CutPrefix(key.Partition, queue)
		return ok && markers.IsRow(key.Row) && (day == "" || len(day) == len("-20060102") && strings.Trim(day[1:], "0123456789") == "")
	}
}

// GC deletes a partition's markers of messages that can no longer arrive, and returns how many it deleted; markers of
// messages that never expire are kept. Errors: why markers cannot be listed or deleted; markers deleted before the
// error are counted. Requests: 1 per 1000 markers in the partition, and 1 per 100 deleted.
func (i *Inbox) GC(ctx context.Context, partition string) (deleted int, err error) {
	filter := "PartitionKey eq " + markers.Quoted(partition) + " and RowKey ge " + markers.Quoted(inboxPrefix) + " and RowKey lt " + markers.Quoted(strings.TrimSuffix(inboxPrefix, "-")+".")
	return markers.DeleteExpired(ctx, i.table, filter, func(key markers.Key) bool { return strings.HasPrefix(key.Row, inboxPrefix) })
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
		page, err := send.Page(ctx, wire.Observed(k.o.Hooks, k.path, nil), "List Blobs", pages.NextPage)
		if err != nil {
			return deleted, fmt.Errorf("list %s: %w", k.path, azerr.Clean(err))
		}
		before := cmp.Or(ptr.Value(page.Date), time.Now()).Add(-sessionAge) // by the clock of the blobs' timestamps
		for _, b := range page.Segment.BlobItems {
			if b.Properties.LastModified == nil || !b.Properties.LastModified.Before(before) || !lease.State(ptr.Value(b.Properties.LeaseState)).Free() {
				continue
			}
			name := ptr.Value(b.Name)
			err := send.Resend(ctx, wire.Observed(k.o.Hooks, k.path+"/"+name, nil), "Delete Blob", 4, time.Minute, func(ctx context.Context) error {
				_, err := k.container.NewBlobClient(name).Delete(ctx, nil)
				return err
			})
			switch out := azerr.Classify(err); {
			case err == nil:
				deleted++
			case out.Kind == azerr.NotFound, out.Kind == azerr.Held:
			default:
				return deleted, fmt.Errorf("delete %s/%s: %w", k.path, name, azerr.Clean(err))
			}
		}
	}
	return deleted, nil
}
