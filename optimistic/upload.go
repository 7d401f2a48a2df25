package optimistic

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

const (
	defaultBlockSize = 8 << 20
	maxBlockSize     = 4000 << 20 // REST: "Put Block", 4,000 MiB since version 2019-12-12
	maxBlocks        = 50_000     // REST: "Put Block List"
)

// UploadOptions tunes Upload. The zero value replaces whatever is there: last writer wins.
type UploadOptions struct {
	// Conditions decide who wins. IfMatch replaces one version only; IfNoneMatch "*" creates only; none, or IfMatch
	// "*", is last writer wins. Defaults to none.
	Conditions Conditions

	// HTTPHeaders, Metadata, Tags and Tier are what the blob has afterwards: an upload replaces a blob whole. A missing
	// Content-Type becomes application/octet-stream; a missing tier is inherited from a blob that is overwritten.
	HTTPHeaders *blob.HTTPHeaders
	Metadata    map[string]string
	Tags        map[string]string
	Tier        *blob.AccessTier

	// CPK and EncryptionScope are passed with every request.
	CPK             *blob.CPKInfo
	EncryptionScope *blob.CPKScopeInfo

	// BlockSize is the size of a staged block in bytes; content of at most one block is sent in a single request.
	// Defaults to 8 MiB, which reaches to 390 GiB.
	BlockSize int64

	// Concurrency is how many blocks are staged at a time. BlockSize × (Concurrency + 1) bytes are held in memory.
	// Defaults to 4.
	Concurrency int

	// Progress is told how many bytes have been stored so far, one call at a time. Defaults to none.
	Progress func(bytes int64)

	// Sending's TryTimeout defaults to 5 minutes here, because a block takes long on a slow line.
	Sending

	_ struct{}
}

func (o *UploadOptions) withDefaults() (UploadOptions, error) {
	var out UploadOptions
	if o != nil {
		out = *o
	}
	out.BlockSize = cmp.Or(out.BlockSize, defaultBlockSize)
	out.Concurrency = cmp.Or(out.Concurrency, 4)
	out.TryTimeout = cmp.Or(out.TryTimeout, 5*time.Minute)
	if out.BlockSize < 1 || out.BlockSize > maxBlockSize {
		return out, fmt.Errorf("UploadOptions.BlockSize: %d is not between 1 and %d bytes", out.BlockSize, maxBlockSize)
	}
	if out.Concurrency < 1 {
		return out, fmt.Errorf("UploadOptions.Concurrency: %d is not positive", out.Concurrency)
	}
	if err := out.Conditions.validate(); err != nil {
		return out, err
	}
	if err := validateMetadata(out.Metadata); err != nil {
		return out, err
	}
	var err error
	out.Sending, err = out.Sending.withDefaults()
	return out, err
}

// Upload stores everything that r yields as a block blob, streaming, in bounded memory. Content of at most one block
// goes in one Put Blob; more is staged under ids that no other upload shares, and the condition stands on the commit,
// which is what makes the blob change. (The SDK's UploadBuffer and UploadFile drop conditions above 256 MiB.)
//
// Errors are those of Update: *ConflictError when the condition failed or another upload's commit discarded the staged
// blocks, *UnknownError when the commit may have been applied. Before staging, a condition on a version is looked at
// once, so that a stale one fails before gigabytes are sent. After any error the blob is as it was (or as another
// writer made it); staged blocks that were not committed are dropped by the service after a week.
//
// Cost: 1 request up to one block; else one per block, 1 for the commit and, with a condition on the version, 1 before.
func Upload(ctx context.Context, client *blockblob.Client, r io.Reader, opts *UploadOptions) (Result, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return Result{}, err
	}
	u := upload{call: newCall("put", resource.Path(client.URL()), o.Sending, nil), client: client, o: o}
	err = u.run(ctx, r)
	return u.finish(), err
}

type upload struct {
	*call
	client *blockblob.Client
	o      UploadOptions

	mu     sync.Mutex // guards stored and the calls of Progress
	stored int64
}

func (u *upload) run(ctx context.Context, r io.Reader) error {
	// Most content is small: grow as it comes instead of setting a whole block aside.
	first, err := io.ReadAll(io.LimitReader(r, u.o.BlockSize))
	if err != nil {
		return u.fail(fmt.Errorf("read the content: %w", err))
	}
	w := u.write()
	var second []byte
	if int64(len(first)) == u.o.BlockSize {
		if second, err = readBlock(r, make([]byte, u.o.BlockSize)); err != nil {
			return u.fail(fmt.Errorf("read the content: %w", err))
		}
	}
	if len(second) == 0 {
		w.send = u.putBlob(first, w)
	} else {
		if err := u.preflight(ctx, w); err != nil {
			return err
		}
		ids, err := u.stage(ctx, r, first, second)
		if err != nil {
			return u.fail(err)
		}
		w.send = u.commitBlocks(ids, w)
	}
	if err := u.carryOut(ctx, w, false); err != nil {
		return err
	}
	if len(second) == 0 {
		u.progress(int64(len(first)))
	}
	return nil
}

// write describes the commit: what it is conditional on, and how its fate can be looked up.
func (u *upload) write() write {
	return u.whole(u.o.Conditions, func(ctx context.Context) (State, error) {
		return lookAtBlob(ctx, u.client.BlobClient(), u.o.CPK)
	})
}

// whole is a write that replaces a blob whole and has not read what came before.
func (c *call) whole(on Conditions, look func(context.Context) (State, error)) write {
	w := write{look: look}
	if c.s.LineageSize >= 0 {
		w.id = newWriteID(c.writer)
	}
	switch {
	case on.IfMatch != "" && on.IfMatch != azcore.ETagAny:
		w.base = State{Exists: true, ETag: on.IfMatch}
	case on.IfNoneMatch == azcore.ETagAny:
	default:
		w.anyBase = true
	}
	return w
}

// metadata is the caller's with a lineage of this one write.
func (w write) metadata(own map[string]string) map[string]*string {
	var lineage Lineage
	if w.id != "" {
		base := w.base.ETag
		if w.anyBase {
			base = unknownBase
		}
		lineage = Lineage{{ID: w.id, Base: base}}
	}
	return joinMetadata(mergeMetadata(nil, own), lineage)
}

func (u *upload) putBlob(data []byte, w write) Write {
	opts := blockblob.UploadOptions{
		HTTPHeaders: u.o.HTTPHeaders, Metadata: w.metadata(u.o.Metadata), Tags: u.o.Tags, Tier: u.o.Tier,
		CPKInfo: u.o.CPK, CPKScopeInfo: u.o.EncryptionScope, AccessConditions: accessConditions(u.o.Conditions),
	}
	return func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		allowFor(ctx, int64(len(data)))
		o := opts
		resp, err := u.client.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), &o)
		return deref(resp.ETag), err
	}
}

func (u *upload) commitBlocks(ids []string, w write) Write {
	opts := blockblob.CommitBlockListOptions{
		HTTPHeaders: u.o.HTTPHeaders, Metadata: w.metadata(u.o.Metadata), Tags: u.o.Tags, Tier: u.o.Tier,
		CPKInfo: u.o.CPK, CPKScopeInfo: u.o.EncryptionScope, AccessConditions: accessConditions(u.o.Conditions),
	}
	return func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		o := opts
		resp, err := u.client.CommitBlockList(ctx, ids, &o)
		return deref(resp.ETag), err
	}
}

// preflight spares a doomed upload its bytes. It decides nothing: the condition stays on the commit.
func (u *upload) preflight(ctx context.Context, w write) error {
	if w.anyBase {
		return nil
	}
	now, err := u.look(ctx, w.look)
	if err != nil {
		return u.fail(err)
	}
	if now.Exists == w.base.Exists && now.ETag == w.base.ETag {
		return nil
	}
	u.res.Conflicts++
	return u.observed(&ConflictError{
		Op: u.op, Resource: u.resource, Reason: azerr.Changed, Base: w.base.ETag, Attempts: 1, Elapsed: time.Since(u.began),
	}, w, now)
}
