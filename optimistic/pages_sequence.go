package optimistic

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

// SequenceNumber is the sequence number of a page blob as a Target. The blob must exist. Pages, headers and size are
// not changed.
//
// The guard is the ETag, because a request that sets the number cannot have a condition on the number itself. So any
// write to the blob is a conflict, after which Update reads again. The request has no room for a lineage: as with
// Headers, a lost response is ErrOutcomeUnknown if the blob has another ETag afterwards, unless its metadata show that
// another writer replaced the base. For a fence, which only grows, RaiseSequenceNumber leaves nothing unknown.
//
// A write that an intermediary delivers twice, without any sign of trouble, looks like a conflict, after which Update runs
// the change again: a change that counts in the number may be applied twice.
//
// Cost: 1 request to read, 1 to write.
type SequenceNumber struct {
	Client *pageblob.Client

	_ struct{}
}

// BlobSequence returns the sequence number of a page blob as a Target.
func BlobSequence(client *pageblob.Client) SequenceNumber { return SequenceNumber{Client: client} }

// Resource implements Target.
func (s SequenceNumber) Resource() string { return resource.Path(s.Client.URL()) }

// Traits describes the target to the calls of package optimistic.
func (s SequenceNumber) Traits() Traits { return Traits{Client: s.Client} }

// Clone implements Cacheable.
func (s SequenceNumber) Clone(value int64) (int64, error) { return value, nil }

// Equal implements Cacheable.
func (s SequenceNumber) Equal(x, y int64) bool { return x == y }

// Written implements Cacheable.
func (s SequenceNumber) Written(_ *Version[int64], value int64) (any, error) { return value, nil }

// Read implements Target: one Get Blob Properties.
func (s SequenceNumber) Read(ctx context.Context) (*Version[int64], error) {
	resp, err := blobProperties(ctx, s.Client.BlobClient(), nil)
	if azerr.Has(err, "BlobNotFound") {
		return &Version[int64]{}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := checkType(resp.BlobType, blob.BlobTypePageBlob); err != nil {
		return nil, err
	}
	n := deref(resp.BlobSequenceNumber)
	return &Version[int64]{
		State: State{Exists: true, ETag: deref(resp.ETag), LastModified: deref(resp.LastModified)}, Value: n, Carry: n,
	}, nil
}

// Look implements Target: one Get Blob Properties.
func (s SequenceNumber) Look(ctx context.Context) (State, error) {
	return lookAtBlob(ctx, s.Client.BlobClient(), nil)
}

// Prepare implements Target: one Set Blob Properties.
func (s SequenceNumber) Prepare(base *Version[int64], value int64, lineage Lineage, c Conditions) (Write, error) {
	if !base.Exists {
		return nil, errors.New("a sequence number cannot be created without the blob: create the page blob first")
	}
	if value < 0 {
		return nil, fmt.Errorf("sequence number: %d is negative", value)
	}
	if before, _ := base.Carry.(int64); before == value {
		return nil, nil
	}
	return setSequence(s.Client, pageblob.SequenceNumberActionTypeUpdate, value, writeConditions(base.State, c)), nil
}

// Remove implements Target: the number goes with its blob only.
func (s SequenceNumber) Remove(State, Conditions) (Write, error) {
	return nil, errors.New("a sequence number cannot be deleted: update it to 0, or delete the blob")
}

func setSequence(client *pageblob.Client, action pageblob.SequenceNumberActionType, n int64, access *blob.AccessConditions) Write {
	return func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		resp, err := client.UpdateSequenceNumber(ctx, &pageblob.UpdateSequenceNumberOptions{
			ActionType: &action, SequenceNumber: &n, AccessConditions: access,
		})
		return deref(resp.ETag), err
	}
}

// CompareAndSwapSequenceNumber sets the number to next on the condition that it is old. Otherwise the error is a
// *ConflictError with Reason Sequence. Other writes to the blob are no conflict: the number is compared again. Other
// errors are those of Update on a SequenceNumber. Cost: 2 requests, and 2 more for each write in between.
// A swap that an intermediary delivers twice, without any sign of trouble, looks like such a conflict.
func CompareAndSwapSequenceNumber(ctx context.Context, client *pageblob.Client, old, next int64, opts *UpdateOptions) (Result, error) {
	target := BlobSequence(client)
	return Update(ctx, target, func(_ context.Context, n *int64) error {
		if *n != old {
			return &ConflictError{
				Op: "compare and swap", Resource: target.Resource(), Reason: azerr.Sequence,
				Err: fmt.Errorf("the sequence number is %d, not %d", *n, old),
			}
		}
		*n = next
		return nil
	}, opts)
}

// RaiseSequenceNumber raises the number to at least n, and returns the number then: more than n if another writer
// raised it further. It needs no condition and no read before it: the service compares (REST: "Set Blob Properties",
// x-ms-sequence-number-action: max), and a repetition changes nothing. So the outcome is unknown only as long as the
// service cannot be reached.
//
// Result.Changed means that the service has carried out the request, even if the number has not changed. Cost: 1
// request.
func RaiseSequenceNumber(ctx context.Context, client *pageblob.Client, n int64, opts *WriteOptions) (int64, Result, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return 0, Result{}, err
	}
	if n < 0 {
		return 0, Result{}, fmt.Errorf("sequence number: %d is negative", n)
	}
	if o.OperationID != "" {
		return 0, Result{}, errors.New("OperationID: raising is idempotent by itself, and nothing would remember the operation")
	}
	c := newCall("raise sequence number", resource.Path(client.URL()), o.Sending, nil)
	w := write{anyBase: true, id: newWriteID(c.writer)}
	now, action := int64(0), pageblob.SequenceNumberActionTypeMax
	access := accessConditions(o.Conditions)
	w.send = func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		resp, err := client.UpdateSequenceNumber(ctx, &pageblob.UpdateSequenceNumberOptions{
			ActionType: &action, SequenceNumber: &n, AccessConditions: access,
		})
		if err == nil {
			now = deref(resp.BlobSequenceNumber)
		}
		return deref(resp.ETag), err
	}
	w.look = func(ctx context.Context) (State, error) {
		v, err := BlobSequence(client).Read(ctx)
		if err != nil || !v.Exists {
			return State{}, err
		}
		if now = v.Value; now >= n {
			v.Lineage = lineageOf(Entry{ID: w.id, Base: unknownBase}) // the number is as requested
		}
		return v.State, nil
	}
	err = c.carryOut(ctx, w)
	c.res.WriteID = ""
	return now, c.finish(), err
}
