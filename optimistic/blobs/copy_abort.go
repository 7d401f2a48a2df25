package blobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// ErrNoCopy means that the copy to abort is not pending: it has ended, or the blob has been the destination of another
// copy since. Nothing was changed.
var ErrNoCopy = errors.New("no such copy is pending")

// AbortCopyOptions tunes AbortCopy. The zero value is the default.
type AbortCopyOptions struct {
	// LeaseID is the id of the lease that the caller holds on the destination. The service supports no condition but
	// this one and the id of the copy. Defaults to none.
	LeaseID string

	optimistic.SendOptions

	_ struct{}
}

// AbortCopy aborts a pending copy. The destination remains, empty, with its metadata.
//
// The request names the copy, so it cannot abort another one, however many times it is carried out. If the copy is
// found aborted, AbortCopy succeeds, no matter who aborted it; AlreadyApplied is set if none of its own requests can
// have aborted it. If the copy has ended otherwise, or was replaced by another, the error is ErrNoCopy.
//
// Cost: 1 request; 2 if the copy is not pending. AbortCopy is safe for concurrent use.
func AbortCopy(ctx context.Context, destination *blob.Client, copyID string, opts *AbortCopyOptions) (_ optimistic.Result, err error) {
	o := ptr.Value(opts)
	if copyID == "" {
		return optimistic.Result{}, errors.New("abort copy: the id of the copy is empty")
	}
	ctx, c, end, err := begin.On(ctx, o.SendOptions, "blobs.AbortCopy", "abort copy", destination)
	if err != nil {
		return optimistic.Result{}, err
	}
	defer end(&err)
	err = abortCopy(ctx, c, destination, copyID, o.LeaseID)
	return optimistic.Result(c.Finish()), err
}

func abortCopy(ctx context.Context, c *protocol.Call, destination *blob.Client, copyID, leaseID string) error {
	var found blob.GetPropertiesResponse
	is := func(status blob.CopyStatusType) bool {
		return ptr.Value(found.CopyID) == copyID && ptr.Value(found.CopyStatus) == status
	}
	w := protocol.Change{AnyBase: true, Silent: true}
	w.Send = func(ctx context.Context) (azcore.ETag, error) {
		_, err := wire.Request(ctx, "Abort Copy Blob", func(ctx context.Context) (blob.AbortCopyFromURLResponse, error) {
			return destination.AbortCopyFromURL(ctx, copyID, &blob.AbortCopyFromURLOptions{
				LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: ptr.Optional(leaseID)},
			})
		})
		return "", err
	}
	w.Look = func(ctx context.Context) (_ protocol.State, err error) {
		found, err = anyblob.Properties(ctx, destination)
		if err != nil {
			return anyblob.AbsentState(err)
		}
		now := protocol.State{Exists: true, ETag: ptr.Value(found.ETag)}
		if is(blob.CopyStatusTypeAborted) {
			now = now.Decide(protocol.Committed, "") // aborted as requested, no matter by whom
		}
		return now, nil
	}
	err := c.CarryOut(ctx, w)
	over := azerr.Has(err, "NoPendingCopyOperation", "CopyIdMismatch")
	unknown, ok := errors.AsType[*optimistic.UnknownError](err)
	switch {
	case ok && over && (is(blob.CopyStatusTypeSuccess) || is(blob.CopyStatusTypeFailed)):
		return c.Fail(fmt.Errorf("%w: %w", ErrNoCopy, unknown.Err)) // the copy ended otherwise, so no request of ours aborted it
	case ok || !over:
		return err
	}
	if _, look := c.Look(ctx, w.Look); look == nil && is(blob.CopyStatusTypeAborted) {
		c.Res.AlreadyApplied, c.Res.ETag = true, ptr.Value(found.ETag)
		return nil
	}
	return c.Fail(fmt.Errorf("%w: %w", ErrNoCopy, errors.Unwrap(err)))
}
