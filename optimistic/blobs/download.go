package blobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
)

// ErrNotModified means that a read's IfNoneMatch or IfModifiedSince did not hold: there is no newer version. Nothing
// was written to the output.
var ErrNotModified = errors.New("not modified")

// DownloadOptions tunes Download. The zero value is the default.
type DownloadOptions struct {
	// Conditions must hold for the version that is read. Defaults to none.
	Conditions optimistic.Conditions

	// Offset is where reading begins. Defaults to 0.
	Offset int64

	// BlockSize is how many bytes one request asks for. Defaults to 8 MiB.
	BlockSize int64

	// Concurrency is how many ranges are read ahead. BlockSize × Concurrency bytes are kept in memory. Defaults to 4.
	Concurrency int

	// Restart empties the output before the read starts again because the blob changed. Defaults to none: then such a
	// change is a *ConflictError, because bytes that were written cannot be taken back. It is called up to 3 times.
	Restart func() error

	// Progress is called with the number of bytes written so far, and the total. Defaults to none.
	Progress func(bytes, total int64)

	// SendOptions's MinRate defaults to 32 KiB/s here, because a range takes long on a slow connection.
	optimistic.SendOptions

	_ struct{}
}

// DownloadResult describes the version that was read, and the cost.
type DownloadResult struct {
	ETag         azcore.ETag
	LastModified time.Time // by the service's clock
	Size         int64     // of the blob, in bytes
	Type         blob.BlobType
	Sealed       bool // an append blob that gets no more bytes
	Headers      blob.HTTPHeaders
	Metadata     map[string]string // lower-case names, without the lineage
	Restarts     int               // how many times the read started again because the blob changed
	Requests     int
	Elapsed      time.Duration
}

func (o *DownloadOptions) withDefaults() (DownloadOptions, error) {
	out := ptr.Value(o)
	out.BlockSize = cmp.Or(out.BlockSize, defaultBlockSize)
	out.Concurrency = cmp.Or(out.Concurrency, 4)
	out.MinRate = cmp.Or(out.MinRate, minRate)
	if out.BlockSize < 1 || out.Concurrency < 1 {
		return out, fmt.Errorf("DownloadOptions: BlockSize %d and Concurrency %d must be positive", out.BlockSize, out.Concurrency)
	}
	if out.Offset < 0 {
		return out, fmt.Errorf("DownloadOptions.Offset: %d is negative", out.Offset)
	}
	return out, validateRead(out.Conditions)
}

// Download writes one version of a blob to w, whole. A blob longer than BlockSize is read in ranges, each pinned to the
// ETag of the first. If the blob changes meanwhile, the read starts again if Restart is given; otherwise the error is a
// *ConflictError. After an error w may have received a part of the content: do not use it.
//
// The bytes of an append blob never change, so one that grows meanwhile is read up to the length that it had at first. One that is
// created again has changed; it is recognized by its time of creation, or by having fewer blocks.
//
// Other errors are *NotFoundError, ErrNotModified, *ConflictError (IfMatch, IfUnmodifiedSince or IfTags did not hold;
// Reason is Gone if the blob does not exist and IfMatch names a version), the context's cause, and errors of the
// service or of w.
//
// Cost: 1 request per BlockSize; 2 for an empty blob. With Offset, at least 1, also if there is nothing behind it.
func Download(ctx context.Context, client *blob.Client, w io.Writer, opts *DownloadOptions) (_ DownloadResult, err error) {
	if err := sealed.NotNil("get", "w", w); err != nil {
		return DownloadResult{}, err
	}
	o, err := opts.withDefaults()
	if err != nil {
		return DownloadResult{}, err
	}
	ctx, call, end, err := begin.On(ctx, o.SendOptions, "blobs.Download", "get", client)
	if err != nil {
		return DownloadResult{}, err
	}
	defer end(&err)
	d := download{Call: call, client: client, o: o}
	for {
		err = d.pass(ctx, w)
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		torn := ok && conflict.Op == tornRead
		if !torn || o.Restart == nil || d.got.Restarts == maxRestarts {
			break
		}
		if err = o.Restart(); err != nil {
			err = d.Fail(fmt.Errorf("start over: %w", err))
			break
		}
		d.got.Restarts++
	}
	d.got.Requests, d.got.Elapsed = d.Requests(), time.Since(d.Began)
	return d.got, err
}

// maxRestarts bounds how many times a read starts again because the blob changed.
const maxRestarts = 3

// tornRead is the Op of a conflict during a read, as opposed to one with the caller's conditions.
const tornRead = "read"

// download is one Download in progress.
type download struct {
	*protocol.Call
	client *blob.Client
	o      DownloadOptions
	start  part // the first that was read
	got    DownloadResult
}

// chunk is the content of one range, or the error of reading it.
type chunk struct {
	data []byte
	err  error
}

// pass reads the blob once from the start.
func (d *download) pass(ctx context.Context, w io.Writer) error {
	first, total, err := d.first(ctx)
	if err != nil {
		return err
	}
	if err := d.emit(w, first, d.o.Offset, total); err != nil {
		return err
	}
	done := d.o.Offset + int64(len(first))

	ctx, cancel := context.WithCancel(ctx)
	// Ranges are read ahead by one goroutine each and written in order. The queue's capacity is the read-ahead; every
	// goroutine sends exactly one chunk into its own buffered channel, so none outlives the drain below.
	queue := make(chan chan chunk, d.o.Concurrency)
	next := done
	fill := func() {
		for next < total && len(queue) < cap(queue) {
			offset, size, ch := next, min(d.o.BlockSize, total-next), make(chan chunk, 1)
			next += size
			queue <- ch
			go func() {
				data, err := d.rest(ctx, offset, size)
				ch <- chunk{data, err}
			}()
		}
	}
	defer func() {
		cancel()
		for len(queue) > 0 {
			<-<-queue
		}
	}()
	for done < total {
		fill()
		c := <-<-queue
		if c.err != nil {
			return c.err
		}
		if err := d.emit(w, c.data, done, total); err != nil {
			return err
		}
		done += int64(len(c.data))
	}
	return nil
}

func (d *download) emit(w io.Writer, data []byte, before, total int64) error {
	if _, err := w.Write(data); err != nil {
		return d.Fail(fmt.Errorf("write the output: %w", err))
	}
	if d.o.Progress != nil {
		d.o.Progress(before+int64(len(data)), total)
	}
	return nil
}

// first reads the first range under the caller's conditions. Its response shows the version and the size. It includes the byte before
// Offset: a range that begins at the end is refused, and the refusal shows neither.
func (d *download) first(ctx context.Context) ([]byte, int64, error) {
	part, err := protocol.Again(ctx, d.Call, func(ctx context.Context) (part, error) {
		p, err := d.get(ctx, blob.HTTPRange{Offset: max(0, d.o.Offset-1), Count: d.o.BlockSize}, d.o.Conditions)
		if azerr.Has(err, "InvalidRange") && d.o.Offset == 0 {
			// An empty blob has no first byte (REST: "Get Blob", 416 InvalidRange).
			p, err = d.get(ctx, blob.HTTPRange{}, d.o.Conditions)
		}
		return p, err
	})
	out := azerr.Classify(err)
	switch {
	case err == nil && part.notModified:
		return nil, 0, fmt.Errorf("get %s: %w", d.Resource, ErrNotModified)
	case err == nil:
	case azerr.Has(err, "InvalidRange"):
		return nil, 0, d.Fail(fmt.Errorf("the blob has fewer than %d bytes", d.o.Offset))
	case anyblob.BaseGone(d.o.Conditions, err):
		return nil, 0, &optimistic.ConflictError{Op: d.Op, Resource: d.Resource, Reason: azerr.Gone, Base: d.o.Conditions.IfMatch, Err: azerr.Clean(err)}
	case azerr.Has(err, "BlobNotFound", "ContainerNotFound"):
		return nil, 0, &optimistic.NotFoundError{Op: d.Op, Resource: d.Resource, Err: azerr.Clean(err)}
	case out.Kind == azerr.Conflict:
		return nil, 0, &optimistic.ConflictError{Op: d.Op, Resource: d.Resource, Reason: out.Reason, Base: d.o.Conditions.IfMatch, Err: azerr.Clean(err)}
	default:
		return nil, 0, d.Fail(err)
	}
	restarts := d.got.Restarts
	d.start, d.got = part, part.result
	d.got.Restarts = restarts
	return part.data[min(d.o.Offset, 1):], d.got.Size, nil
}

// rest reads a later range of the version that first found, or of a later one that has only grown.
func (d *download) rest(ctx context.Context, offset, size int64) ([]byte, error) {
	pinned := optimistic.Conditions{IfMatch: d.got.ETag, LeaseID: d.o.Conditions.LeaseID}
	grows := d.got.Type == blob.BlobTypeAppendBlob
	if grows {
		pinned.IfMatch = ""
	}
	part, err := protocol.Again(ctx, d.Call, func(ctx context.Context) (part, error) {
		return d.get(ctx, blob.HTTPRange{Offset: offset, Count: size}, pinned)
	})
	again := grows && err == nil && (!part.created.Equal(d.start.created) || part.blocks < d.start.blocks || part.result.Type != d.got.Type)
	switch out := azerr.Classify(err); {
	case again:
		return nil, &optimistic.ConflictError{Op: tornRead, Resource: d.Resource, Reason: azerr.Changed, Base: d.got.ETag, Current: part.result.ETag, Elapsed: time.Since(d.Began)}
	case err == nil && int64(len(part.data)) == size:
		return part.data, nil
	case err == nil:
		return nil, d.Fail(fmt.Errorf("the service sent %d bytes of a range of %d", len(part.data), size))
	case out.Kind == azerr.Conflict, azerr.Has(err, "BlobNotFound", "InvalidRange"):
		reason := azerr.Changed
		if azerr.Has(err, "BlobNotFound") {
			reason = azerr.Gone
		}
		return nil, &optimistic.ConflictError{Op: tornRead, Resource: d.Resource, Reason: reason, Base: d.got.ETag, Elapsed: time.Since(d.Began), Err: azerr.Clean(err)}
	default:
		return nil, d.Fail(err)
	}
}

// part is the result of one Get Blob.
type part struct {
	data        []byte
	notModified bool
	created     time.Time
	blocks      int32 // of an append blob; they only become more, unless it is created again
	result      DownloadResult
}

func (d *download) get(ctx context.Context, r blob.HTTPRange, c optimistic.Conditions) (part, error) {
	resp, err := anyblob.Get(ctx, d.client, r, c)
	if err != nil || resp.Body == nil {
		return part{notModified: err == nil}, err
	}
	defer resp.Body.Close()
	p := part{created: ptr.Value(resp.CreationTime), blocks: ptr.Value(resp.BlobCommittedBlockCount), result: DownloadResult{
		ETag: ptr.Value(resp.ETag), LastModified: ptr.Value(resp.LastModified), Headers: downloadedHeaders(resp),
		Type: ptr.Value(resp.BlobType), Sealed: ptr.Value(resp.IsSealed),
	}}
	p.result.Metadata, _ = meta.Split(resp.Metadata)
	if _, err := protocol.Sent("Content-Range", resp.ContentRange, nil); err != nil && r.Offset > 0 {
		return p, err // an intermediary may have sent the blob from its beginning on
	}
	_, _, p.result.Size, _ = anyblob.ContentRange(resp.ContentRange)
	p.data, err = anyblob.ReadBody(ctx, d.client, resp, d.o.BlockSize)
	if _, ok := errors.AsType[anyblob.TooLong](err); ok {
		err = fmt.Errorf("the blob grew while it was read: %w", io.ErrUnexpectedEOF)
	}
	if resp.ContentRange == nil {
		p.result.Size = int64(len(p.data))
	}
	return p, err
}
