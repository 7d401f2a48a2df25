// Package send sends requests that are safe to repeat, with bounds that suit the handling of messages.
package send

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// TryTimeout bounds one try of a request.
const TryTimeout = 10 * time.Second

// Resend sends a request that is safe to repeat, and retries transient faults. op is the request's name in the REST
// reference. The error is that of the last response, or the cause of ctx.
func Resend(ctx context.Context, w wire.Wire, op string, tries int, each time.Duration, request func(context.Context) error) error {
	_, err := w.Send(ctx, op, wire.Again{Try: each, Budget: Budget(tries)}, request)
	return err
}

// Budget is so many tries with short waits between them.
func Budget(tries int) retry.Budget {
	return retry.Budget{Attempts: tries, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}}
}

// Page fetches the next page of a list, with as many tries as the SDK would make.
func Page[P any](ctx context.Context, w wire.Wire, op string, next func(context.Context) (P, error)) (page P, err error) {
	err = Resend(ctx, w, op, 4, time.Minute, func(ctx context.Context) (err error) {
		page, err = next(ctx)
		return err
	})
	return page, err
}

// NoSuchBlob reports whether the service says that the blob does not exist. A 404 without a code may come from an
// intermediary, and a missing container says nothing about a blob.
func NoSuchBlob(err error) bool {
	out := azerr.Classify(err)
	return out.Kind == azerr.NotFound && out.Code != "" && out.Code != "ContainerNotFound"
}

// DeleteBlobs deletes the blobs under a prefix that are old, by the clock of their timestamps, and neither changed nor leased
// meanwhile; it returns how many. Errors: why blobs cannot be listed or deleted; blobs deleted before the error are counted. Requests:
// 1 per 5000 blobs, and 1 per blob deleted.
func DeleteBlobs(ctx context.Context, in *container.Client, prefix string, hooks observe.Hooks, old func(b *container.BlobItem, now time.Time) bool) (deleted int, err error) {
	path := resource.Path(in.URL())
	list := &container.ListBlobsFlatOptions{Prefix: &prefix, Include: container.ListBlobsInclude{Metadata: true}}
	for pages := in.NewListBlobsFlatPager(list); pages.More(); {
		page, err := Page(ctx, wire.Observed(hooks, path, nil), "List Blobs", pages.NextPage)
		if err != nil {
			return deleted, fmt.Errorf("list %s: %w", path, azerr.Clean(err))
		}
		now := cmp.Or(ptr.Value(page.Date), time.Now())
		for _, b := range page.Segment.BlobItems {
			if b.Properties == nil || b.Properties.LastModified == nil || !old(b, now) {
				continue
			}
			name := ptr.Value(b.Name)
			etag := azcore.ETag(`"` + strings.Trim(string(ptr.Value(b.Properties.ETag)), `"`) + `"`) // listed without quotes
			unchanged := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}
			err := Resend(ctx, wire.Observed(hooks, path+"/"+name, nil), "Delete Blob", 4, time.Minute, func(ctx context.Context) error {
				_, err := in.NewBlobClient(name).Delete(ctx, &blob.DeleteOptions{AccessConditions: unchanged})
				return err
			})
			switch out := azerr.Classify(err); {
			case err == nil:
				deleted++
			case out.Kind == azerr.NotFound, out.Kind == azerr.Conflict, out.Kind == azerr.Held:
			default:
				return deleted, fmt.Errorf("delete %s/%s: %w", path, name, azerr.Clean(err))
			}
		}
	}
	return deleted, nil
}
