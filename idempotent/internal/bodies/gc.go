package bodies

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

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// GC deletes the bodies whose messages expired longer ago than age; see claimcheck.ClaimCheck.GC.
func (k *Store) GC(ctx context.Context, age time.Duration) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("claimcheck: GC: an age of %v would delete bodies that are needed", age)
	}
	for pages := k.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: to.Ptr(Prefix), Include: container.ListBlobsInclude{Metadata: true}}); pages.More(); {
		page, err := send.Page(ctx, wire.Observed(k.hooks, k.path, nil), "List Blobs", pages.NextPage)
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
			err := send.Resend(ctx, k.wire(ptr.Value(b.Name)), "Delete Blob", 4, time.Minute, func(ctx context.Context) error {
				_, err := k.container.NewBlobClient(ptr.Value(b.Name)).Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{
					ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}})
				return err
			})
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
