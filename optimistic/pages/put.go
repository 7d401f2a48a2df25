package pages

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// PutOptions tunes Put. The zero value overwrites the pages: last writer wins.
type PutOptions struct {
	// Conditions and Sequence decide which writer wins. They default to none.
	Conditions optimistic.Conditions
	Sequence   SequenceConditions

	optimistic.SendOptions

	_ struct{}
}

// Put writes data at offset of a page blob, in one conditional request. The length of data is a multiple of
// PageSize, at most 4 MiB; zeros are cleared rather than stored. To compute the data from the stored data, Update a
// Range.
//
// Errors are those of Update: *ConflictError (Reason Sequence if a sequence condition failed), and *UnknownError if the
// response was lost and a repetition was refused. With IfMatch no repetition can overwrite another write. With only a
// sequence condition the same holds if each number belongs to one writer at a time, which a fence ensures. With
// neither, a repetition may overwrite a write in between.
//
// Cost: 1 request; 2 on a conflict.
func Put(ctx context.Context, client *pageblob.Client, offset int64, data []byte, opts *PutOptions) (optimistic.Result, error) {
	o := ptr.Value(opts)
	if offset < 0 || offset%PageSize != 0 || len(data)%PageSize != 0 || len(data) == 0 || len(data) > maxPageWrite {
		return optimistic.Result{}, fmt.Errorf("pages: %d bytes at %d are not 1 to %d bytes on multiples of %d", len(data), offset, maxPageWrite, PageSize)
	}
	return writePages(ctx, "pages.Put", "put pages", pageWrite{client: client, offset: offset, data: data}, o)
}

// Clear clears count bytes at offset, both multiples of PageSize, in one conditional request of any size. Errors
// and cost are those of Put.
func Clear(ctx context.Context, client *pageblob.Client, offset, count int64, opts *PutOptions) (optimistic.Result, error) {
	o := ptr.Value(opts)
	if offset < 0 || offset%PageSize != 0 || count%PageSize != 0 || count <= 0 {
		return optimistic.Result{}, fmt.Errorf("pages: %d bytes at %d are not on multiples of %d", count, offset, PageSize)
	}
	return writePages(ctx, "pages.Clear", "clear pages", pageWrite{client: client, offset: offset, count: count}, o)
}

func writePages(ctx context.Context, name, op string, p pageWrite, o PutOptions) (_ optimistic.Result, err error) {
	client := p.client
	if err := o.Conditions.Validate(); err != nil {
		return optimistic.Result{}, err
	}
	ctx, c, end, err := begin.On(ctx, o.SendOptions, name, op, client)
	if err != nil {
		return optimistic.Result{}, err
	}
	defer end(&err)
	w := protocol.Change{AnyBase: true}
	if m := o.Conditions.IfMatch; m != "" && m != azcore.ETagAny {
		w = protocol.Change{Base: protocol.State{Exists: true, ETag: m}}
	}
	p.sequence = o.Sequence
	w.Send = p.prepare(anyblob.AccessConditions(o.Conditions))
	w.Look = func(ctx context.Context) (protocol.State, error) {
		return anyblob.Look(ctx, client.BlobClient())
	}
	err = c.CarryOut(ctx, w)
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); ok && azerr.Has(conflict.Err, "SequenceNumberConditionNotMet") {
		conflict.Reason = azerr.Sequence
	}
	return optimistic.Result(c.Finish()), err
}

// RaiseSequenceNumber raises the number to at least n and returns the resulting number, which is more than n if another
// writer raised it further. It needs no condition and no read before it: the service compares (REST: "Set Blob
// Properties", x-ms-sequence-number-action: max), and a repetition changes nothing. So the outcome is unknown only
// while the service cannot be reached.
//
// Result.Changed means that the service has carried out the request, even if the number has not changed. Cost: 1
// request.
func RaiseSequenceNumber(ctx context.Context, client *pageblob.Client, n int64, opts *optimistic.WriteOptions) (_ int64, _ optimistic.Result, err error) {
	o := ptr.Value(opts)
	if c := o.Conditions; c != (optimistic.Conditions{IfTags: c.IfTags, LeaseID: c.LeaseID}) {
		return 0, optimistic.Result{}, errors.New("WriteOptions.Conditions: raising needs no version; only IfTags and LeaseID can be given here")
	}
	if n < 0 {
		return 0, optimistic.Result{}, fmt.Errorf("sequence number: %d is negative", n)
	}
	if o.OperationID != "" {
		return 0, optimistic.Result{}, errors.New("OperationID: raising is idempotent by itself, and nothing would remember the operation")
	}
	ctx, c, end, err := begin.On(ctx, o.SendOptions, "pages.RaiseSequenceNumber", "raise sequence number", client)
	if err != nil {
		return 0, optimistic.Result{}, err
	}
	defer end(&err)
	w := protocol.Change{AnyBase: true}
	now, action := int64(0), pageblob.SequenceNumberActionTypeMax
	access := anyblob.AccessConditions(o.Conditions)
	w.Send = func(ctx context.Context) (azcore.ETag, error) {
		resp, err := wire.Request(ctx, "Set Blob Properties", func(ctx context.Context) (pageblob.UpdateSequenceNumberResponse, error) {
			return client.UpdateSequenceNumber(ctx, &pageblob.UpdateSequenceNumberOptions{
				ActionType: &action, SequenceNumber: &n, AccessConditions: access,
			})
		})
		now, err = protocol.Sent("x-ms-blob-sequence-number", resp.BlobSequenceNumber, err)
		return ptr.Value(resp.ETag), err
	}
	w.Look = func(ctx context.Context) (protocol.State, error) {
		props, err := anyblob.Properties(ctx, client.BlobClient())
		if err != nil {
			return anyblob.AbsentState(err)
		}
		found := protocol.State{Exists: true, ETag: ptr.Value(props.ETag)}
		if now, err = protocol.Sent("x-ms-blob-sequence-number", props.BlobSequenceNumber, nil); now >= n {
			found = found.Decide(protocol.Committed, "") // as requested
		}
		return found, err
	}
	err = c.CarryOut(ctx, w)
	return now, optimistic.Result(c.Finish()), err
}
