package idempotent

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/azerr"
)

// GC deletes the bodies that were stored longer ago than age, and returns how many it deleted. It does not know which
// messages exist, so age must be longer than the life of any message that needs a body: its TTL, 7 days unless
// Outgoing.TTL says otherwise, plus the time for which messages are kept in the poison queue to be redriven. A blob
// that is written meanwhile is kept.
//
// A lifecycle rule of the account does the same for free: delete blobs whose names begin with
// "<container>/azconcclaim/" a number of days after their last modification.
//
// Errors: why blobs cannot be listed or deleted; blobs deleted before the error are counted. Requests: 1 per 5000
// blobs, and 1 per blob deleted.
func (k *ClaimCheck) GC(ctx context.Context, age time.Duration) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("ClaimCheck.GC: an age of %v would delete bodies that are needed", age)
	}
	for pages := k.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: to.Ptr(claimPrefix)}); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return deleted, fmt.Errorf("list %s: %w", k.path, azerr.Clean(err))
		}
		before := cmp.Or(deref(page.Date), time.Now()).Add(-age) // by the clock of the blobs' timestamps
		for _, b := range page.Segment.BlobItems {
			if b.Properties.LastModified == nil || !b.Properties.LastModified.Before(before) {
				continue
			}
			etag := azcore.ETag(`"` + strings.Trim(string(deref(b.Properties.ETag)), `"`) + `"`) // listed without quotes
			_, err := k.container.NewBlobClient(deref(b.Name)).Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{
				ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}})
			switch out := azerr.Classify(err); {
			case err == nil:
				deleted++
			case out.Kind == azerr.NotFound, out.Kind == azerr.Conflict: // deleted already, or the message was sent again
			default:
				return deleted, fmt.Errorf("delete %s/%s: %w", k.path, deref(b.Name), azerr.Clean(err))
			}
		}
	}
	return deleted, nil
}
