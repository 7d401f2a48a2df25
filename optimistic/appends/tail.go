package appends

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// look returns the outcome of the append at a position, in the terms of protocol.Call.Judge.
func (a *appending) look(ctx context.Context, at int64) (protocol.State, error) {
	t, err := a.tail(ctx, at, true)
	if err != nil || !t.exists {
		return protocol.State{}, err
	}
	now := protocol.State{Exists: true, ETag: positionTag(t.end)}
	switch {
	case t.end < at, t.end == at && !t.sealed && !a.full:
		// Not yet. (If the blob is shorter, it was deleted and created again, and nothing is known.)
	case t.ours && a.unique:
		now = now.Decide(protocol.Committed, "")
	case t.ours:
		a.twin = true
	default: // other bytes are there, or nothing can be appended any more
		now = now.Decide(protocol.Refused, "")
	}
	return now, nil
}

// tail is the result of a look at the end of the blob.
type tail struct {
	exists, sealed bool
	end            int64
	ours           bool // the data is at the position
}

// tail reads the bytes at a position, with one request. If the blob ends before it and goesOn is set, it asks for the end; otherwise it returns the
// refusal.
func (a *appending) tail(ctx context.Context, at int64, goesOn bool) (tail, error) {
	client := a.client.BlobClient()
	resp, err := anyblob.Get(ctx, client, blob.HTTPRange{Offset: at, Count: int64(len(a.data))}, optimistic.Conditions{})
	switch {
	case azerr.Has(err, "BlobNotFound"):
		return tail{}, nil
	case azerr.Has(err, "InvalidRange") && goesOn:
		props, err := anyblob.Properties(ctx, client)
		if azerr.Has(err, "BlobNotFound") {
			return tail{}, nil
		}
		if err != nil {
			return tail{}, err
		}
		a.version = ptr.Value(props.ETag)
		end, err := anyblob.LengthOf(ctx, client, props)
		return tail{exists: true, sealed: ptr.Value(props.IsSealed), end: end}, err
	case err != nil:
		return tail{}, err
	}
	defer resp.Body.Close()
	a.version = ptr.Value(resp.ETag)
	_, _, end, ok := anyblob.ContentRange(resp.ContentRange)
	if !ok {
		return tail{}, fmt.Errorf("the service answered a range with %q", ptr.Value(resp.ContentRange))
	}
	data, err := anyblob.ReadBody(ctx, client, resp, int64(len(a.data)))
	return tail{exists: true, sealed: ptr.Value(resp.IsSealed), end: end, ours: bytes.Equal(data, a.data)}, err
}

// end returns the length of the blob. If the blob does not exist and Create is set, end creates it.
func (a *appending) end(ctx context.Context) (int64, error) {
	for {
		var length int64
		props, err := protocol.Again(ctx, a.Call, func(ctx context.Context) (blob.GetPropertiesResponse, error) {
			props, err := anyblob.Properties(ctx, a.client.BlobClient())
			if err == nil {
				length, err = anyblob.LengthOf(ctx, a.client.BlobClient(), props)
			}
			return props, err
		})
		switch {
		case azerr.Has(err, "BlobNotFound") && a.o.Create:
			if err := a.create(ctx); err != nil {
				return 0, err
			}
			continue
		case azerr.Classify(err).Kind == azerr.NotFound:
			return 0, &optimistic.NotFoundError{Op: a.Op, Resource: a.Resource, Err: azerr.Clean(err)}
		case err != nil:
			return 0, a.Fail(err)
		case anyblob.CheckType(props.BlobType, blob.BlobTypeAppendBlob) != nil:
			return 0, a.Fail(anyblob.CheckType(props.BlobType, blob.BlobTypeAppendBlob))
		case ptr.Value(props.IsSealed):
			return 0, a.final(ErrSealed, nil)
		}
		a.version = ptr.Value(props.ETag)
		return length, nil
	}
}

// create creates an empty blob, unless another client has created it. Either is fine, so nothing needs to be resolved.
func (a *appending) create(ctx context.Context) error {
	opts := appendblob.CreateOptions{
		HTTPHeaders:      a.o.HTTPHeaders,
		AccessConditions: anyblob.AccessConditions(optimistic.Conditions{IfNoneMatch: azcore.ETagAny}),
	}
	_, err := protocol.Again(ctx, a.Call, func(ctx context.Context) (appendblob.CreateResponse, error) {
		o := opts
		return wire.Request(ctx, "Put Blob", func(ctx context.Context) (appendblob.CreateResponse, error) {
			return a.client.Create(ctx, &o)
		})
	})
	if azerr.Classify(err).Reason == azerr.Exists || azerr.Has(err, "LeaseIdMissing") {
		return nil // what has a lease exists, and the service checks the lease first
	}
	if err != nil {
		return a.Fail(err)
	}
	a.created = true
	return nil
}

// translate turns the errors of Commit into those of Append.
func (a *appending) translate(err error) error {
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); ok {
		conflict.Attempts, conflict.Elapsed = a.Res.Attempts, time.Since(a.Began)
		conflict.Base, conflict.Current = a.o.Conditions.IfMatch, a.version
		switch azerr.Classify(conflict.Err).Code {
		case "MaxBlobSizeConditionNotMet":
			return a.final(ErrFull, conflict.Err)
		case "ConditionNotMet", "TargetConditionNotMet":
			conflict.Reason = azerr.Changed
		default:
			if conflict.Reason != azerr.Gone {
				conflict.Reason = azerr.Position
			}
		}
		if conflict.Reason == azerr.Gone && !a.o.Create && a.Res.Attempts == 1 && a.o.expects() {
			return &optimistic.NotFoundError{Op: a.Op, Resource: a.Resource, Err: conflict.Err} // it was never seen to exist
		}
		return conflict
	}
	if unknown, ok := errors.AsType[*optimistic.UnknownError](err); ok {
		unknown.Base = a.o.Conditions.IfMatch
		if a.twin {
			unknown.Why = "the same bytes are at the position, but another appender may have written them"
		}
		return unknown
	}
	switch {
	case azerr.Has(err, "BlobIsSealed"):
		return a.final(ErrSealed, err)
	case azerr.Has(err, "BlockCountExceedsLimit"):
		return a.final(ErrFull, err)
	}
	return err
}

// final returns an error that ends the append, with the operation and the resource.
func (a *appending) final(sentinel, cause error) error {
	if cause == nil {
		return fmt.Errorf("%s %s: %w", a.Op, a.Resource, sentinel)
	}
	return fmt.Errorf("%s %s: %w: %w", a.Op, a.Resource, sentinel, azerr.Clean(cause))
}

// positionTag returns a position in the form of an ETag, distinct from every ETag of the service.
func positionTag(at int64) azcore.ETag { return azcore.ETag(fmt.Sprintf("@%d", at)) }
