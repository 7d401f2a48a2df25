package pages

import (
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

// NewSequenceNumber returns the sequence number of a page blob as a Target. The blob must exist. Pages, headers and size are
// not changed.
//
// The guard is the ETag, because a request that sets the number cannot have a condition on the number itself. So any
// write to the blob is a conflict, after which Update reads again. The request has no room for a lineage: as with
// Headers, a lost response is ErrOutcomeUnknown if the blob has another ETag afterwards, unless its metadata show that
// another writer replaced the base. For a fence, which only grows, RaiseSequenceNumber leaves nothing unknown.
//
// A write that an intermediary silently delivers twice looks like a conflict, after which Update runs the change again:
// a change that counts in the number may be applied twice.
//
// Cost: 1 request to read, 1 to write.
func NewSequenceNumber(client *pageblob.Client) optimistic.Target[int64] {
	return sequenceTarget{client}
}

type sequenceTarget struct{ Client *pageblob.Client }

// Protocol implements optimistic.Target.
func (s sequenceTarget) Protocol() sealed.Target[int64] { return s }

// Resource implements Target.
func (s sequenceTarget) Resource() string { return resource.Path(s.Client.URL()) }

// Traits describes the target to the calls of package optimistic.
func (s sequenceTarget) Traits() sealed.Traits { return sealed.Traits{Client: s.Client} }

// Clone implements Cacheable.
func (s sequenceTarget) Clone(value int64) (int64, error) { return value, nil }

// Equal implements Cacheable.
func (s sequenceTarget) Equal(x, y int64) bool { return x == y }

// Written implements Cacheable.
func (s sequenceTarget) Written(_ *sealed.Version[int64], value int64) (any, error) {
	return value, nil
}

// Read implements Target: one Get Blob Properties.
func (s sequenceTarget) Read(ctx context.Context) (*sealed.Version[int64], error) {
	resp, err := anyblob.Properties(ctx, s.Client.BlobClient(), nil)
	if err != nil {
		return anyblob.Absent[int64](err)
	}
	if err := anyblob.CheckType(resp.BlobType, blob.BlobTypePageBlob); err != nil {
		return nil, err
	}
	n, err := protocol.Sent("x-ms-blob-sequence-number", resp.BlobSequenceNumber, nil)
	if err != nil {
		return nil, err
	}
	v := &sealed.Version[int64]{State: protocol.State{Exists: true, ETag: ptr.Value(resp.ETag), LastModified: ptr.Value(resp.LastModified)}, Value: n}
	return sealed.Carry(v, n), nil
}

// Look implements Target: one Get Blob Properties.
func (s sequenceTarget) Look(ctx context.Context) (protocol.State, error) {
	return anyblob.Look(ctx, s.Client.BlobClient(), nil)
}

// Prepare implements Target: one Set Blob Properties.
func (s sequenceTarget) Prepare(base *sealed.Version[int64], value int64, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if !base.Exists {
		return protocol.Prepared{}, errors.New("a sequence number cannot be created without the blob: create the page blob first")
	}
	if value < 0 {
		return protocol.Prepared{}, fmt.Errorf("sequence number: %d is negative", value)
	}
	if before, _ := sealed.Carried(base).(int64); before == value {
		return protocol.Prepared{}, nil
	}
	return protocol.Prepared{Send: setSequence(s.Client, pageblob.SequenceNumberActionTypeUpdate, value, anyblob.WriteConditions(base.State, c))}, nil
}

// Remove implements Target: it refuses, because the number is deleted only with its blob.
func (s sequenceTarget) Remove(protocol.State, sealed.Conditions) (protocol.Write, error) {
	return nil, errors.New("a sequence number cannot be deleted: update it to 0, or delete the blob")
}

func setSequence(client *pageblob.Client, action pageblob.SequenceNumberActionType, n int64, access *blob.AccessConditions) protocol.Write {
	return func(ctx context.Context) (azcore.ETag, error) {
		resp, err := wire.Request(ctx, "Set Blob Properties", func(ctx context.Context) (pageblob.UpdateSequenceNumberResponse, error) {
			return client.UpdateSequenceNumber(ctx, &pageblob.UpdateSequenceNumberOptions{
				ActionType: &action, SequenceNumber: &n, AccessConditions: access,
			})
		})
		return ptr.Value(resp.ETag), err
	}
}

// CompareAndSwapSequenceNumber sets the number to next on the condition that it is old. Otherwise the error is a
// *ConflictError with Reason Sequence. Other writes to the blob are no conflict: the number is compared again. Other
// errors are those of Update on a SequenceNumber. A swap that an intermediary silently delivers twice looks like such a
// conflict. Cost: 2 requests, and 2 more for each write in between.
func CompareAndSwapSequenceNumber(ctx context.Context, client *pageblob.Client, old, next int64, opts *optimistic.UpdateOptions) (optimistic.Result, error) {
	target := NewSequenceNumber(client)
	return optimistic.Update(ctx, target, func(_ context.Context, n *int64) error {
		if *n != old {
			return &optimistic.ConflictError{
				Op: "compare and swap", Resource: target.Resource(), Reason: azerr.Sequence,
				Err: fmt.Errorf("the sequence number is %d, not %d", *n, old),
			}
		}
		*n = next
		return nil
	}, opts)
}

// RaiseSequenceNumber raises the number to at least n and returns the resulting number, which is more than n if another
// writer raised it further. It needs no condition and no read before it: the service compares (REST: "Set Blob
// Properties", x-ms-sequence-number-action: max), and a repetition changes nothing. So the outcome is unknown only
// while the service cannot be reached.
//
// Result.Changed means that the service has carried out the request, even if the number has not changed. Cost: 1
// request.
func RaiseSequenceNumber(ctx context.Context, client *pageblob.Client, n int64, opts *optimistic.WriteOptions) (_ int64, _ optimistic.Result, err error) {
	if err := sealed.NotNil("raise sequence number", "client", client); err != nil {
		return 0, optimistic.Result{}, err
	}
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
	c, err := o.Begin("raise sequence number", resource.Path(client.URL()))
	if err != nil {
		return 0, optimistic.Result{}, err
	}
	ctx, end := c.Start(ctx, "pages.RaiseSequenceNumber")
	defer end(&err)
	w := protocol.Change{AnyBase: true, ID: protocol.NewWriteID()}
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
		v, err := sequenceTarget{client}.Read(ctx)
		if err != nil || !v.Exists {
			return protocol.State{}, err
		}
		if now = v.Value; now >= n {
			v.Lineage = protocol.LineageOf(protocol.Entry{ID: w.ID, Base: protocol.UnknownBase}) // the number is as requested
		}
		return v.State, nil
	}
	err = c.CarryOut(ctx, w)
	c.Res.WriteID = ""
	return now, optimistic.Result(c.Finish()), err
}
