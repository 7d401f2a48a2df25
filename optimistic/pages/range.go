package pages

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

const (
	// PageSize is the unit, in bytes, in which page blobs are written.
	PageSize = 512

	maxPageWrite = 4 << 20 // REST: "Put Page"
)

// SequenceConditions are conditions on the blob's sequence number (REST: "Put Page"). They enforce a fence on a page
// blob: the holder of fence n raises the number to n (RaiseSequenceNumber) and then writes with IfAtMost n, which fails
// once a later holder has raised it further. A nil field is no condition.
type SequenceConditions struct {
	IfEqual  *int64 // the number must be this one
	IfAtMost *int64 // the number must not be larger
	IfLess   *int64 // the number must be smaller
}

// Range is a range of a page blob as a Target. The blob must exist and contain the range. The range begins and ends
// on multiples of PageSize and is at most 4 MiB long, so that one request writes it, whole or not at all. The value
// always has the length of the range. A value of zeros is cleared rather than stored. Other pages, metadata and headers
// are not changed.
//
// The guard is the ETag of the whole blob: a write to other pages is also a conflict, after which Update reads again
// and continues. (The sequence number could not replace it, because Put Page does not change the number.)
//
// A Put Page has no metadata, and so no room for a lineage. A lost response is ErrOutcomeUnknown if the blob has another ETag
// afterwards, unless the blob's metadata show that another writer replaced the base. Finding the bytes that were sent
// would prove nothing, because another writer may have sent the same. A write that an intermediary silently delivers twice looks
// like a conflict, and Update runs the change again. OperationID is refused.
//
// Cost: 1 request to read, 1 to write.
type Range struct {
	Client *pageblob.Client // required
	Offset int64            // in bytes
	Count  int64            // in bytes

	// Sequence is checked by the write and by the read before it. A failure is final. Defaults to none.
	Sequence SequenceConditions

	optimistic.Sealed[[]byte]
}

// NewRange returns a range of a page blob as a Target.
func NewRange(client *pageblob.Client, offset, count int64) Range {
	return Range{Client: client, Offset: offset, Count: count}
}

func (p Range) Resource() string { return resource.Path(p.Client.URL()) }

func (p Range) protocol() any { return rangeTarget{p} }

// What is behind a target is found by its method protocol.
func init() {
	sealed.Opens(func(target any) any {
		if t, ok := target.(interface{ protocol() any }); ok {
			return t.protocol()
		}
		return nil
	})
}

// rangeTarget is a Range to the operations of package optimistic.
type rangeTarget struct{ Range }

func (p rangeTarget) Traits() sealed.Traits {
	return sealed.Traits{Client: p.Client}
}

func (p rangeTarget) Clone(value []byte) ([]byte, error) { return bytes.Clone(value), nil }

func (p rangeTarget) validate() error {
	if p.Offset < 0 || p.Offset%PageSize != 0 || p.Count%PageSize != 0 || p.Count < PageSize || p.Count > maxPageWrite {
		return fmt.Errorf("pages: %d bytes at %d are not a range of %d to %d bytes on multiples of %d", p.Count, p.Offset, PageSize, maxPageWrite, PageSize)
	}
	return nil
}

// Read implements Target: one Get Blob.
func (p rangeTarget) Read(ctx context.Context) (*sealed.Version[[]byte], error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	resp, data, err := p.download(ctx)
	if err != nil {
		return anyblob.Absent[[]byte](err)
	}
	v := &sealed.Version[[]byte]{State: protocol.State{Exists: true, ETag: ptr.Value(resp.ETag), LastModified: ptr.Value(resp.LastModified)}}
	if p.Sequence != (SequenceConditions{}) {
		n, err := protocol.Sent("x-ms-blob-sequence-number", resp.BlobSequenceNumber, nil)
		if err != nil {
			return nil, err
		}
		if !p.Sequence.allow(n) {
			return nil, fmt.Errorf("the sequence number is %d: %w", n,
				&optimistic.ConflictError{Op: "write", Resource: p.Resource(), Reason: azerr.Sequence, Current: v.ETag})
		}
	}
	v.Value = data
	return sealed.Carry(v, bytes.Clone(data)), nil
}

// Look implements Target: one Get Blob Properties. The metadata's lineage can only prove that another writer replaced the base.
func (p rangeTarget) Look(ctx context.Context) (protocol.State, error) {
	return anyblob.Look(ctx, p.Client.BlobClient())
}

func (p rangeTarget) download(ctx context.Context) (blob.DownloadStreamResponse, []byte, error) {
	resp, err := anyblob.Get(ctx, p.Client.BlobClient(), blob.HTTPRange{Offset: p.Offset, Count: p.Count}, optimistic.Conditions{})
	if err != nil {
		return resp, nil, err
	}
	defer resp.Body.Close()
	data, err := anyblob.ReadBody(ctx, p.Client.BlobClient(), resp, p.Count)
	if err == nil && int64(len(data)) < p.Count {
		err = fmt.Errorf("the blob ends %d bytes into the range", len(data))
	}
	return resp, data, err
}

// Prepare implements Target: one Put Page.
func (p rangeTarget) Prepare(base *sealed.Version[[]byte], value []byte, _ protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if !base.Exists {
		return protocol.Prepared{}, errors.New("pages cannot be created without the blob: create the page blob first")
	}
	before, _ := sealed.Carried(base).([]byte)
	if len(value) != len(before) {
		return protocol.Prepared{}, fmt.Errorf("pages: the value has %d bytes, the range takes %d", len(value), len(before))
	}
	if bytes.Equal(value, before) {
		return protocol.Prepared{}, nil
	}
	data := bytes.Clone(value)
	w := pageWrite{client: p.Client, offset: p.Offset, data: data, sequence: p.Sequence}
	return protocol.Prepared{Send: w.prepare(anyblob.WriteConditions(base.State, c)), Carry: data}, nil
}

func (s SequenceConditions) allow(n int64) bool {
	return (s.IfEqual == nil || n == *s.IfEqual) && (s.IfAtMost == nil || n <= *s.IfAtMost) && (s.IfLess == nil || n < *s.IfLess)
}

// pageWrite is one Put Page.
type pageWrite struct {
	client   *pageblob.Client
	offset   int64
	data     []byte
	count    int64 // to be cleared, without data
	sequence SequenceConditions
}

// prepare returns the request that writes the data, or clears the pages if it is zeros.
func (w pageWrite) prepare(access *blob.AccessConditions) protocol.Write {
	at := blob.HTTPRange{Offset: w.offset, Count: max(w.count, int64(len(w.data)))}
	sequence := &pageblob.SequenceNumberAccessConditions{
		IfSequenceNumberEqualTo: w.sequence.IfEqual, IfSequenceNumberLessThanOrEqualTo: w.sequence.IfAtMost, IfSequenceNumberLessThan: w.sequence.IfLess,
	}
	if bytes.Count(w.data, []byte{0}) == len(w.data) {
		opts := pageblob.ClearPagesOptions{AccessConditions: access, SequenceNumberAccessConditions: sequence}
		return func(ctx context.Context) (azcore.ETag, error) {
			o := opts
			resp, err := wire.Request(ctx, "Put Page", func(ctx context.Context) (pageblob.ClearPagesResponse, error) {
				return w.client.ClearPages(ctx, at, &o)
			})
			return ptr.Value(resp.ETag), err
		}
	}
	opts := pageblob.UploadPagesOptions{AccessConditions: access, SequenceNumberAccessConditions: sequence}
	return func(ctx context.Context) (azcore.ETag, error) {
		protocol.AllowFor(ctx, int64(len(w.data)))
		o := opts
		resp, err := wire.Request(ctx, "Put Page", func(ctx context.Context) (pageblob.UploadPagesResponse, error) {
			return w.client.UploadPages(ctx, anyblob.Lend(w.data), at, &o)
		})
		return ptr.Value(resp.ETag), err
	}
}
