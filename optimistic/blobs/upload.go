package blobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

const (
	defaultBlockSize = 8 << 20
	maxBlockSize     = 4000 << 20 // REST: "Put Block", 4,000 MiB since version 2019-12-12
	maxBlocks        = 50_000     // REST: "Put Block List"
)

// UploadOptions tunes Upload. The zero value replaces an existing blob: last writer wins.
type UploadOptions struct {
	// Conditions decide which writer wins. IfMatch replaces one version only, and IfNoneMatch "*" only creates. No
	// condition, or IfMatch "*", is last writer wins. Defaults to none.
	Conditions optimistic.Conditions

	// HTTPHeaders, Metadata, Tags and Tier are those of the blob afterwards: an upload replaces the whole blob. The
	// default Content-Type is application/octet-stream; the default tier is that of the blob that is overwritten.
	HTTPHeaders *blob.HTTPHeaders
	Metadata    map[string]string
	Tags        map[string]string
	Tier        *blob.AccessTier

	// BlockSize is the size of a staged block in bytes; content of at most one block is sent in a single request.
	// Defaults to 8 MiB, which allows content of up to 390 GiB.
	BlockSize int64

	// LookFirst looks at the blob before anything is sent. An append or page blob is then refused with an *optimistic.TypeError,
	// and Result.Created shows whether there was a blob. With IfMatch an upload always looks. Defaults to false: the
	// blob is replaced without a look.
	LookFirst bool

	// Concurrency is how many blocks are staged at the same time. BlockSize × (Concurrency + 1) bytes are kept in
	// memory. Defaults to 4.
	Concurrency int

	// Progress is called with the number of bytes stored so far, one call at a time. Defaults to none.
	Progress func(bytes int64)

	// SendOptions's MinRate defaults to 32 KiB/s here, because a block takes long on a slow connection.
	optimistic.SendOptions

	_ struct{}
}

// minRate is the slowest transfer of content that is waited for, in bytes per second.
const minRate = 32 << 10

func (o *UploadOptions) withDefaults() (UploadOptions, error) {
	out := ptr.Value(o)
	out.BlockSize = cmp.Or(out.BlockSize, defaultBlockSize)
	out.Concurrency = cmp.Or(out.Concurrency, 4)
	out.MinRate = cmp.Or(out.MinRate, minRate)
	if out.BlockSize < 1 || out.BlockSize > maxBlockSize {
		return out, fmt.Errorf("UploadOptions.BlockSize: %d is not between 1 and %d bytes", out.BlockSize, maxBlockSize)
	}
	if out.Concurrency < 1 {
		return out, fmt.Errorf("UploadOptions.Concurrency: %d is not positive", out.Concurrency)
	}
	if err := out.Conditions.Validate(); err != nil {
		return out, err
	}
	if err := meta.ValidateAll(out.Metadata); err != nil {
		return out, err
	}
	return out, nil
}

// Upload stores everything that it reads from r in a block blob, in bounded memory. Content of at most one block is
// sent in one Put Blob. Longer content is staged under ids that no other upload uses; the commit changes the blob and
// checks the condition. (The SDK's UploadBuffer and UploadFile drop conditions above 256 MiB.)
//
// A commit discards the blocks that other uploads have staged for the same blob. If this happens to an upload without a
// condition, and r is an io.Seeker, it stages its blocks again from the start of r, up to 12 times. Otherwise the error
// is a *ConflictError with Reason BlockList.
//
// Errors are those of Update: *ConflictError if the condition failed or if another commit discarded the staged blocks,
// *UnknownError if the commit may have been applied, and *optimistic.TypeError if the upload looks first. A stale condition
// fails before the content is sent. Only io.EOF ends the content: after any other error of r nothing is committed, and
// the error is in the chain. After any error but *UnknownError the blob is unchanged by this upload. The service drops
// staged blocks that were not committed after a week.
//
// An upload with IfMatch preserves the blob's lineage. Any other upload replaces it, so that a writer whose response is
// lost at that moment gets ErrOutcomeUnknown.
//
// A caller that may write and not read, such as one with a SAS that lacks r, can upload all the same: Upload goes on if it may not
// look, and replaces the lineage. After a lost response that only a look could resolve, the error is then *UnknownError.
//
// Cost: 1 request up to one block, otherwise 1 per block and 1 for the commit. Looking first costs 1 more: with IfMatch, with
// IfNoneMatch "*" above one block, and with LookFirst without a condition on the version.
func Upload(ctx context.Context, client *blockblob.Client, r io.Reader, opts *UploadOptions) (_ optimistic.Result, err error) {
	if err := sealed.NotNil("put", "r", r); err != nil {
		return optimistic.Result{}, err
	}
	o, err := opts.withDefaults()
	if err != nil {
		return optimistic.Result{}, err
	}
	ctx, call, end, err := begin.On(ctx, o.SendOptions, "blobs.Upload", "put", client)
	if err != nil {
		return optimistic.Result{}, err
	}
	defer end(&err)
	u := upload{Call: call, client: client, o: o}
	err = u.run(ctx, r)
	return u.done(err)
}

// upload is one Upload or CommitBlocks in progress.
type upload struct {
	*protocol.Call
	client *blockblob.Client
	o      UploadOptions

	creates bool // a look found no blob, and the write has no condition on that

	mu     sync.Mutex // guards stored and the calls of Progress
	stored int64
}

func (u *upload) done(err error) (optimistic.Result, error) {
	u.Res.Created = u.Res.Created || err == nil && u.creates
	return optimistic.Result(u.Finish()), err
}

func (u *upload) run(ctx context.Context, r io.Reader) error {
	start, seekable := position(r)
	// Most content is small, so the buffer grows with it instead of starting at BlockSize.
	first, err := io.ReadAll(io.LimitReader(r, u.o.BlockSize))
	if err != nil {
		return u.Fail(fmt.Errorf("read the content: %w", err))
	}
	var second []byte
	if int64(len(first)) == u.o.BlockSize {
		if second, err = readBlock(r, make([]byte, u.o.BlockSize)); err != nil {
			return u.Fail(fmt.Errorf("read the content: %w", err))
		}
	}
	w, err := u.write(ctx, len(second) > 0)
	if err != nil {
		return err
	}
	if len(second) == 0 {
		if w.Send, err = u.putBlob(first, w); err != nil {
			return u.Fail(err)
		}
		if err := u.CarryOut(ctx, w); err != nil {
			return err
		}
		u.progress(int64(len(first)))
		return nil
	}
	loop := protocol.Loop{Call: u.Call, Budget: protocol.ConflictBudget(attempts, -1, retry.Backoff{Base: 20 * time.Millisecond})}
	loop.Next = func(ctx context.Context, open *protocol.Refusal) (*protocol.Change, error) {
		blocks := [][]byte{first, second}
		if open != nil {
			if _, err := r.(io.Seeker).Seek(start, io.SeekStart); err != nil {
				return nil, u.Fail(fmt.Errorf("read the content again: %w", err))
			}
			u.stored, blocks = 0, nil
		}
		ids, err := u.stage(ctx, r, blocks...)
		if err != nil {
			return nil, u.Fail(err)
		}
		if w.Send, err = u.commitBlocks(ids, w); err != nil {
			return nil, u.Fail(err)
		}
		u.Res.Attempts++
		return &w, nil
	}
	loop.Refused = func(w protocol.Change, err error) (open *protocol.Refusal, again bool, cause error) {
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok {
			return nil, false, err
		}
		return &protocol.Refusal{Change: w, Conflict: conflict}, conflict.Reason == azerr.BlockList && w.AnyBase && seekable, err
	}
	return loop.Run(ctx)
}

// position returns the current offset of r, and whether r can seek back to it.
func position(r io.Reader) (int64, bool) {
	seeker, ok := r.(io.Seeker)
	if !ok {
		return 0, false
	}
	at, err := seeker.Seek(0, io.SeekCurrent) // fails for a pipe
	return at, err == nil
}

// write prepares the commit, and looks at the blob first if staged content, IfMatch or LookFirst requires it.
func (u *upload) write(ctx context.Context, staged bool) (protocol.Change, error) {
	w := anyblob.Whole(u.Call, u.o.Conditions, u.client.BlobClient())
	if creates := !w.Base.Exists && !w.AnyBase; creates && !staged || w.AnyBase && !u.o.LookFirst {
		return w, nil
	}
	w, exists, err := anyblob.Preview(ctx, u.Call, w, u.client.BlobClient(), blob.BlobTypeBlockBlob)
	u.creates = !exists
	return w, err
}

func (u *upload) putBlob(data []byte, w protocol.Change) (protocol.Write, error) {
	metadata, err := anyblob.MetadataOf(u.Call, w, u.o.Metadata)
	if err != nil {
		return nil, err
	}
	opts := blockblob.UploadOptions{
		HTTPHeaders: u.o.HTTPHeaders, Metadata: metadata, Tags: u.o.Tags, Tier: u.o.Tier,
		AccessConditions: anyblob.AccessConditions(u.o.Conditions),
	}
	return func(ctx context.Context) (azcore.ETag, error) {
		protocol.AllowFor(ctx, int64(len(data)))
		o := opts
		resp, err := wire.Request(ctx, "Put Blob", func(ctx context.Context) (blockblob.UploadResponse, error) {
			return u.client.Upload(ctx, anyblob.Lend(data), &o)
		})
		return ptr.Value(resp.ETag), err
	}, nil
}

func (u *upload) commitBlocks(ids []string, w protocol.Change) (protocol.Write, error) {
	metadata, err := anyblob.MetadataOf(u.Call, w, u.o.Metadata)
	if err != nil {
		return nil, err
	}
	opts := blockblob.CommitBlockListOptions{
		HTTPHeaders: u.o.HTTPHeaders, Metadata: metadata, Tags: u.o.Tags, Tier: u.o.Tier,
		AccessConditions: anyblob.AccessConditions(u.o.Conditions),
	}
	return func(ctx context.Context) (azcore.ETag, error) {
		o := opts
		resp, err := wire.Request(ctx, "Put Block List", func(ctx context.Context) (blockblob.CommitBlockListResponse, error) {
			return u.client.CommitBlockList(ctx, ids, &o)
		})
		return ptr.Value(resp.ETag), err
	}, nil
}
