package tickets

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

// Suffix follows the name of a lock in the name of the blob in which its waiters sign up.
const Suffix = ".azconc-waiters"

// Blob is the append blob in which the waiters of a lock sign up. The service orders what is appended, and appends never
// conflict. It exists from the first wait on, until a holder or a garbage collection finds that nobody waits.
type Blob struct {
	Client *appendblob.Client
	Wire   wire.Wire
	Try    time.Duration // for one request
}

// size is that of a ticket: a line with the waiter's name. Since all are equally long, a ticket's offset is its number.
const size = 64

// line returns the text of a ticket. Nothing but people reads it.
func line(owner string) []byte {
	name := url.PathEscape(owner)
	return fmt.Appendf(nil, "%-*s\n", size-1, name[:min(len(name), size-1)])
}

// Take signs up. issued is the number of tickets that the record knows to have had their turn. A ticket whose response is
// lost stays without a waiter, and is passed over. Requests: 1, or 3 if the blob has to be created.
func (b Blob) Take(ctx context.Context, owner string, next int64) (Ticket, error) {
	t, err := b.append(ctx, owner, next)
	if bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.BlockCountExceedsLimit) {
		if err = b.create(ctx, err); err == nil {
			t, err = b.append(ctx, owner, next)
		}
	}
	return t, err
}

func (b Blob) append(ctx context.Context, owner string, next int64) (t Ticket, err error) {
	err = b.Wire.Once(ctx, "Append Block", b.Try, func(ctx context.Context) error {
		r, err := b.Client.AppendBlock(ctx, body(line(owner)), nil)
		if err != nil {
			return err
		}
		var offset int64
		if _, err := fmt.Sscan(ptr.Value(r.BlobAppendOffset), &offset); err != nil || offset < 0 || offset/size >= most {
			return fmt.Errorf("append offset %q is not a number of bytes", ptr.Value(r.BlobAppendOffset))
		}
		t = Ticket{number: offset/size + 1, fresh: offset/size < next}
		return nil
	})
	return t, err
}

// create creates the blob, if it does not exist, or replaces one that is full. The numbers begin again then.
func (b Blob) create(ctx context.Context, why error) error {
	var access blob.ModifiedAccessConditions
	if bloberror.HasCode(why, bloberror.BlobNotFound) {
		access.IfNoneMatch = ptr.Optional(azcore.ETagAny)
	}
	err := b.Wire.Once(ctx, "Put Blob", b.Try, func(ctx context.Context) error {
		_, err := b.Client.Create(ctx, &appendblob.CreateOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &access}})
		return err
	})
	if azerr.Classify(err).Kind == azerr.Conflict {
		return nil // another waiter has created it
	}
	return err
}

// Issued returns how many tickets there are, and the version of the blob. Requests: 1.
func (b Blob) Issued(ctx context.Context) (n int64, version azcore.ETag, err error) {
	err = b.Wire.Once(ctx, "Get Blob Properties", b.Try, func(ctx context.Context) error {
		r, err := b.Client.GetProperties(ctx, nil)
		n, version = ptr.Value(r.ContentLength)/size, ptr.Value(r.ETag)
		return err
	})
	return n, version, err
}

// collected is the number of tickets from which on a blob without a waiter is deleted.
const collected = 1000

// Collect deletes the blob if it is large and nobody has signed up since that version.
func (b Blob) Collect(ctx context.Context, n int64, version azcore.ETag) {
	if n < collected {
		return
	}
	_ = b.Delete(ctx, version)
}

// Delete deletes the blob, if it has that version: nobody has signed up since. Requests: 1.
func (b Blob) Delete(ctx context.Context, version azcore.ETag) error {
	return b.Wire.Once(ctx, "Delete Blob", b.Try, func(ctx context.Context) error {
		_, err := b.Client.Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: ptr.Optional(version)}}})
		return err
	})
}

// shown bounds the number of waiters that are named.
const shown = 1000

// Names returns who has signed up from the given ticket on, in order. Requests: 1.
func (b Blob) Names(ctx context.Context, next int64) (names []string, err error) {
	err = b.Wire.Once(ctx, "Get Blob", b.Try, func(ctx context.Context) error {
		r, err := b.Client.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: next * size, Count: shown * size}})
		if bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.InvalidRange) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = r.Body.Close() }()
		text, err := io.ReadAll(io.LimitReader(r.Body, shown*size))
		for ; len(text) >= size; text = text[size:] {
			name := strings.TrimRight(string(text[:size]), " \n")
			if plain, err := url.PathUnescape(name); err == nil {
				name = plain
			}
			names = append(names, name)
		}
		return err
	})
	return names, err
}

func body(text []byte) io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(text)) }
