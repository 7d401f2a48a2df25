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

// GC deletes the bodies that were stored longer ago than age, and returns how many. It does not know which messages there
// are, so age must be longer than any message that needs one can live: its TTL, 7 days unless Outgoing.TTL says otherwise,
// and for as long as messages are kept in the poison queue to be redriven. A blob that is written meanwhile stays.
//
// A lifecycle rule of the account does the same for nothing: delete blobs whose name begins with "<container>/azconcclaim/"
// so many days after their last modification.
//
// Errors: why blobs cannot be listed or deleted; what was deleted until then is counted. Requests: 1 per 5000 blobs, and 1
// per blob that is deleted.
func (k *ClaimCheck) GC(ctx context.Context, age time.Duration) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("ClaimCheck.GC: an age of %v would delete bodies that are needed", age)
	}
	for pages := k.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: to.Ptr(claimPrefix)}); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return deleted, fmt.Errorf("list %s: %w", k.path, azerr.Clean(err))
		}
		before := cmp.Or(deref(page.Date), time.Now()).Add(-age) // by the clock that the blobs' times are of
		for _, b := range page.Segment.BlobItems {
			if b.Properties.LastModified == nil || !b.Properties.LastModified.Before(before) {
				continue
			}
			etag := azcore.ETag(`"` + strings.Trim(string(deref(b.Properties.ETag)), `"`) + `"`) // bare in a list
			_, err := k.container.NewBlobClient(deref(b.Name)).Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{
				ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}})
			switch out := azerr.Classify(err); {
			case err == nil:
				deleted++
			case out.Kind == azerr.NotFound, out.Kind == azerr.Conflict: // somebody else has deleted it, or has sent the message anew
			default:
				return deleted, fmt.Errorf("delete %s/%s: %w", k.path, deref(b.Name), azerr.Clean(err))
			}
		}
	}
	return deleted, nil
}
