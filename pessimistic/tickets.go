package pessimistic

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// waitersSuffix follows the name of a lock in the name of the blob in which its waiters sign up.
const waitersSuffix = ".azconc-waiters"

// ticketBlob is the append blob in which the waiters of a lock sign up. The service orders what is appended, and appends never
// conflict. It exists from the first wait on, until a holder or a garbage collection finds that nobody waits.
type ticketBlob struct {
	client *appendblob.Client
	wire   wire.Wire
}

// ticketTry bounds one request.
const ticketTry = time.Second

// ticketSize is that of a ticket: a line with the waiter's name. Since all are equally long, a ticket's offset is its number.
const ticketSize = 64

// ticketLine returns the text of a ticket. Nothing but people reads it.
func ticketLine(owner string) []byte {
	name := url.PathEscape(owner)
	return fmt.Appendf(nil, "%-*s\n", ticketSize-1, name[:min(len(name), ticketSize-1)])
}

// take signs up. next is the number of tickets that the record knows to have had their turn. A ticket whose response is
// lost stays without a waiter, and is passed over. Requests: 1, or 3 if the blob has to be created.
func (b ticketBlob) take(ctx context.Context, owner string, next int64) (ticket, error) {
	t, err := b.append(ctx, owner, next)
	if bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.BlockCountExceedsLimit) {
		if err = b.create(ctx, err); err == nil {
			t, err = b.append(ctx, owner, next)
		}
	}
	return t, err
}

func (b ticketBlob) append(ctx context.Context, owner string, next int64) (t ticket, err error) {
	err = b.wire.Once(ctx, "Append Block", ticketTry, func(ctx context.Context) error {
		r, err := b.client.AppendBlock(ctx, streaming.NopCloser(bytes.NewReader(ticketLine(owner))), nil)
		if err != nil {
			return err
		}
		var offset int64
		if _, err := fmt.Sscan(ptr.Value(r.BlobAppendOffset), &offset); err != nil || offset < 0 || offset/ticketSize >= mostTickets {
			return fmt.Errorf("append offset %q is not a number of bytes", ptr.Value(r.BlobAppendOffset))
		}
		t = ticket{number: offset/ticketSize + 1, fresh: offset/ticketSize < next}
		return nil
	})
	return t, err
}

// create creates the blob, if it does not exist, or replaces one that is full. The numbers begin again then.
func (b ticketBlob) create(ctx context.Context, why error) error {
	var access blob.ModifiedAccessConditions
	if bloberror.HasCode(why, bloberror.BlobNotFound) {
		access.IfNoneMatch = ptr.Optional(azcore.ETagAny)
	}
	err := b.wire.Once(ctx, "Put Blob", ticketTry, func(ctx context.Context) error {
		_, err := b.client.Create(ctx, &appendblob.CreateOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &access}})
		return err
	})
	if azerr.Classify(err).Kind == azerr.Conflict {
		return nil // another waiter has created it
	}
	return err
}

// issued returns how many tickets there are, and the version of the blob. Requests: 1.
func (b ticketBlob) issued(ctx context.Context) (n int64, version azcore.ETag, err error) {
	err = b.wire.Once(ctx, "Get Blob Properties", ticketTry, func(ctx context.Context) error {
		r, err := b.client.GetProperties(ctx, nil)
		n, version = ptr.Value(r.ContentLength)/ticketSize, ptr.Value(r.ETag)
		return err
	})
	return n, version, err
}

// collected is the number of tickets from which on a blob without a waiter is deleted.
const collected = 1000

// remove deletes the blob, if it has that version: nobody has signed up since. Requests: 1.
func (b ticketBlob) remove(ctx context.Context, version azcore.ETag) error {
	return b.wire.Once(ctx, "Delete Blob", ticketTry, func(ctx context.Context) error {
		_, err := b.client.Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: ptr.Optional(version)}}})
		return err
	})
}

// shownWaiters bounds the number of waiters that are named.
const shownWaiters = 1000

// names returns who has signed up from the given ticket on, in order. Requests: 1.
func (b ticketBlob) names(ctx context.Context, next int64) (names []string, err error) {
	err = b.wire.Once(ctx, "Get Blob", ticketTry, func(ctx context.Context) error {
		r, err := b.client.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: next * ticketSize, Count: shownWaiters * ticketSize}})
		if bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.InvalidRange) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = r.Body.Close() }()
		text, err := io.ReadAll(io.LimitReader(r.Body, shownWaiters*ticketSize))
		for ; len(text) >= ticketSize; text = text[ticketSize:] {
			name := strings.TrimRight(string(text[:ticketSize]), " \n")
			if plain, err := url.PathUnescape(name); err == nil {
				name = plain
			}
			names = append(names, name)
		}
		return err
	})
	return names, err
}
