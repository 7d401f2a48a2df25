package appends

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// SealOptions tunes Seal. The zero value is the default.
type SealOptions struct {
	// Conditions are checked in addition to the position. IfMatch and LeaseID can be given; the service does not
	// support IfTags here.
	Conditions optimistic.Conditions

	// Position is where the blob must end if Pinned is set: a blob that has grown beyond it is not sealed. Without
	// Pinned the blob is sealed wherever it ends.
	Position int64
	Pinned   bool

	optimistic.SendOptions

	_ struct{}
}

// Seal seals an append blob: nothing can be appended any more, and only its metadata, tags and tier can be changed.
// Sealing a sealed blob changes nothing and succeeds, so a lost response is harmless: the request is sent again, and a
// blob that is found sealed (at Position, if that is pinned) is a success, no matter who sealed it. With IfMatch alone,
// a lost response is ErrOutcomeUnknown if the blob is sealed at another ETag, because it may have grown before.
//
// Errors are those of Update: *ConflictError if the blob does not end at Position or is not at IfMatch. Cost: 1
// request; 2 on a conflict.
func Seal(ctx context.Context, client *appendblob.Client, opts *SealOptions) (_ optimistic.Result, err error) {
	if err := sealed.NotNil("seal", "client", client); err != nil {
		return optimistic.Result{}, err
	}
	o := ptr.Value(opts)
	c := o.Conditions
	if c.IfNoneMatch != "" || c.IfTags != "" || !c.IfModifiedSince.IsZero() || !c.IfUnmodifiedSince.IsZero() {
		return optimistic.Result{}, errors.New("SealOptions.Conditions: only IfMatch and LeaseID can be given")
	}
	if o.Position < 0 {
		return optimistic.Result{}, fmt.Errorf("SealOptions.Position: %d is negative", o.Position)
	}
	if err := c.Validate(); err != nil {
		return optimistic.Result{}, err
	}
	call, err := o.Begin("seal", resource.Path(client.URL()))
	if err != nil {
		return optimistic.Result{}, err
	}
	sealing := sealing{Call: call, client: client, o: o}
	ctx, end := sealing.Start(ctx, "appends.Seal")
	defer end(&err)
	err = sealing.run(ctx)
	return optimistic.Result(sealing.Finish()), err
}

// sealing is one seal in progress.
type sealing struct {
	*protocol.Call
	client *appendblob.Client
	o      SealOptions
}

func (s *sealing) run(ctx context.Context) error {
	options := appendblob.SealOptions{AccessConditions: anyblob.AccessConditions(s.o.Conditions)}
	w := protocol.Change{Base: protocol.State{Exists: true}}
	switch m := s.o.Conditions.IfMatch; {
	case s.o.Pinned:
		options.AppendPositionAccessConditions = &appendblob.AppendPositionAccessConditions{AppendPosition: &s.o.Position}
		w.Base.ETag = positionTag(s.o.Position)
	case m != "" && m != azcore.ETagAny:
		w.Base.ETag = m
	default:
		w.AnyBase, w.Base = true, protocol.State{}
	}
	w.Look = func(ctx context.Context) (protocol.State, error) {
		now, sealed, err := s.look(ctx)
		switch {
		case err != nil || !now.Exists:
		case sealed && (w.AnyBase || now.ETag == w.Base.ETag && s.o.Pinned):
			now = now.Decide(protocol.Committed, "") // it is sealed as requested, no matter who sealed it
		case !sealed && !w.AnyBase && now.ETag != w.Base.ETag:
			now = now.Decide(protocol.Refused, "") // a seal is permanent, so ours was not applied
		}
		return now, err
	}
	w.Send = func(ctx context.Context) (azcore.ETag, error) {
		o := options
		resp, err := wire.Request(ctx, "Append Blob Seal", func(ctx context.Context) (appendblob.SealResponse, error) {
			return s.client.Seal(ctx, &o)
		})
		return ptr.Value(resp.ETag), err
	}
	err := s.CarryOut(ctx, w)
	s.Res.ETag, s.Res.BaseETag = realETag(s.Res.ETag), s.o.Conditions.IfMatch
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); ok {
		conflict.Base, conflict.Current = s.o.Conditions.IfMatch, realETag(conflict.Current)
		if azerr.Has(conflict.Err, "AppendPositionConditionNotMet") {
			conflict.Reason = azerr.Position
		}
	}
	return err
}

// look returns the version of the blob, or its end as the version if the seal depends on that, and whether it is
// sealed.
func (s *sealing) look(ctx context.Context) (protocol.State, bool, error) {
	props, err := anyblob.Properties(ctx, s.client.BlobClient(), nil)
	if azerr.NoBlob(err) {
		return protocol.State{}, false, nil
	}
	if err != nil {
		return protocol.State{}, false, err
	}
	now := protocol.State{Exists: true, ETag: ptr.Value(props.ETag)}
	if s.o.Pinned {
		length, err := anyblob.LengthOf(ctx, s.client.BlobClient(), props, nil)
		if err != nil {
			return protocol.State{}, false, err
		}
		now.ETag = positionTag(length)
	}
	return now, ptr.Value(props.IsSealed), nil
}
