package optimistic

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

// ErrNoCopy means that the copy to abort is not pending: it has ended, or the blob has been the destination of another
// copy since. Nothing was changed.
var ErrNoCopy = errors.New("no such copy is pending")

// AbortCopyOptions tunes AbortCopy. The zero value is the default.
type AbortCopyOptions struct {
	// LeaseID is the id of the lease that the caller holds on the destination. The service supports no other condition;
	// the id of the copy is one. Defaults to none.
	LeaseID string

	Sending

	_ struct{}
}

// AbortCopy aborts a pending copy. The destination remains, empty, with its metadata.
//
// The request names the copy, so it cannot abort another one however often it is carried out. If the copy is found
// aborted, AbortCopy succeeds, no matter who aborted it; AlreadyApplied is set if none of its own requests can have
// done it. If the copy has ended otherwise, or was replaced by another, the error is ErrNoCopy.
//
// Cost: 1 request; 2 if the copy is not pending. AbortCopy is safe for concurrent use.
func AbortCopy(ctx context.Context, destination *blob.Client, copyID string, opts *AbortCopyOptions) (Result, error) {
	var o AbortCopyOptions
	if opts != nil {
		o = *opts
	}
	if copyID == "" {
		return Result{}, errors.New("abort copy: the id of the copy is empty")
	}
	s, err := o.Sending.withDefaults()
	if err != nil {
		return Result{}, err
	}
	c := newCall("abort copy", resource.Path(destination.URL()), s, nil)
	err = abortCopy(ctx, c, destination, copyID, o.LeaseID)
	return c.finish(), err
}

func abortCopy(ctx context.Context, c *call, destination *blob.Client, copyID, leaseID string) error {
	var found blob.GetPropertiesResponse
	is := func(status blob.CopyStatusType) bool {
		return deref(found.CopyID) == copyID && deref(found.CopyStatus) == status
	}
	w := write{anyBase: true, id: newWriteID(c.writer)}
	w.send = func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		_, err := destination.AbortCopyFromURL(ctx, copyID, &blob.AbortCopyFromURLOptions{
			LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: optional(leaseID)},
		})
		return "", err
	}
	w.look = func(ctx context.Context) (_ State, err error) {
		found, err = blobProperties(ctx, destination, nil)
		if azerr.Has(err, "BlobNotFound") {
			return State{}, nil
		}
		if err != nil {
			return State{}, err
		}
		now := State{Exists: true, ETag: deref(found.ETag)}
		if is(blob.CopyStatusTypeAborted) {
			now.Lineage = lineageOf(Entry{ID: w.id, Base: unknownBase}) // it is aborted as requested, no matter who did it
		}
		return now, nil
	}
	err := c.carryOut(ctx, w)
	c.res.WriteID = ""
	over := azerr.Has(err, "NoPendingCopyOperation", "CopyIdMismatch")
	unknown, ok := errors.AsType[*UnknownError](err)
	switch {
	case ok && over && (is(blob.CopyStatusTypeSuccess) || is(blob.CopyStatusTypeFailed)):
		return c.fail(fmt.Errorf("%w: %w", ErrNoCopy, unknown.Err)) // it ended otherwise, so no request of ours did it
	case ok || !over:
		return err
	}
	if _, look := c.look(ctx, w.look); look == nil && is(blob.CopyStatusTypeAborted) {
		c.res.AlreadyApplied, c.res.ETag = true, deref(found.ETag)
		return nil
	}
	return c.fail(fmt.Errorf("%w: %w", ErrNoCopy, errors.Unwrap(err)))
}
