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
		before := cmp.Or(deref(page.Date), time.Now()).Add(-age) // by the clock of the blobs' timestamps
		for _, b := range page.Segment.BlobItems {
			from := deref(b.Properties.LastModified)
			if expires, _ := expiryIn(b.Metadata); expires.After(from) {
				from = expires
			}
			if from.IsZero() || !from.Before(before) {
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
