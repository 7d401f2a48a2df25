package optimistic

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

// SealOptions tunes Seal. The zero value is the default.
type SealOptions struct {
	// Conditions are checked in addition to the position. IfMatch and LeaseID can be given; the service does not
	// support IfTags here.
	Conditions Conditions

	// Position is where the blob must end if Pinned is set: a blob that has grown beyond it is not sealed. Defaults to
	// wherever it ends.
	Position int64
	Pinned   bool

	Sending

	_ struct{}
}

// Seal seals an append blob: nothing can be appended any more, and only its metadata, tags and tier can be changed.
// Sealing a sealed blob changes nothing and succeeds, so a lost response is harmless: the request is sent again, and a
// blob that is found sealed (at Position, if that is pinned) is a success, no matter who sealed it. With IfMatch alone,
// a lost response is ErrOutcomeUnknown if the blob is sealed at another ETag, because it may have grown before.
//
// Errors are those of Update: *ConflictError if the blob does not end at Position or is not at IfMatch. Cost: 1
// request; 2 on a conflict.
func Seal(ctx context.Context, client *appendblob.Client, opts *SealOptions) (Result, error) {
	var o SealOptions
	if opts != nil {
		o = *opts
	}
	c := o.Conditions
	if c.IfNoneMatch != "" || c.IfTags != "" || !c.IfModifiedSince.IsZero() || !c.IfUnmodifiedSince.IsZero() {
		return Result{}, errors.New("SealOptions.Conditions: only IfMatch and LeaseID can be given")
	}
	if o.Position < 0 {
		return Result{}, fmt.Errorf("SealOptions.Position: %d is negative", o.Position)
	}
	if err := c.validate(); err != nil {
		return Result{}, err
	}
	s, err := o.Sending.withDefaults()
	if err != nil {
		return Result{}, err
	}
	sealing := sealing{call: newCall("seal", resource.Path(client.URL()), s, nil), client: client, o: o}
	err = sealing.run(ctx)
	return sealing.finish(), err
}

type sealing struct {
	*call
	client *appendblob.Client
	o      SealOptions
}

func (s *sealing) run(ctx context.Context) error {
	options := appendblob.SealOptions{AccessConditions: accessConditions(s.o.Conditions)}
	w := write{id: newWriteID(s.writer), base: State{Exists: true}}
	switch m := s.o.Conditions.IfMatch; {
	case s.o.Pinned:
		options.AppendPositionAccessConditions = &appendblob.AppendPositionAccessConditions{AppendPosition: &s.o.Position}
		w.base.ETag = positionTag(s.o.Position)
	case m != "" && m != azcore.ETagAny:
		w.base.ETag = m
	default:
		w.anyBase, w.base = true, State{}
	}
	w.look = func(ctx context.Context) (State, error) {
		now, sealed, err := s.look(ctx)
		switch {
		case err != nil || !now.Exists:
		case sealed && (w.anyBase || now.ETag == w.base.ETag && s.o.Pinned):
			now.Lineage = lineageOf(Entry{ID: w.id, Base: w.base.ETag}) // it is sealed as requested, no matter who sealed it
		case !sealed && now.ETag != w.base.ETag:
			now.Lineage = lineageOf(Entry{ID: "another's", Base: w.base.ETag}) // a seal is permanent, so ours was not applied
		}
		return now, err
	}
	w.send = func(ctx context.Context) (azcore.ETag, error) {
		CountRequest(ctx)
		o := options
		resp, err := s.client.Seal(ctx, &o)
		return deref(resp.ETag), err
	}
	err := s.carryOut(ctx, w)
	s.res.ETag, s.res.BaseETag, s.res.WriteID = realETag(s.res.ETag), s.o.Conditions.IfMatch, ""
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		conflict.Base, conflict.Current = s.o.Conditions.IfMatch, realETag(conflict.Current)
		if azerr.Has(conflict.Err, "AppendPositionConditionNotMet") {
			conflict.Reason = azerr.Position
		}
	}
	return err
}

// look returns the version of the blob, or its end as the version if the seal depends on that, and whether it is
// sealed.
func (s *sealing) look(ctx context.Context) (State, bool, error) {
	props, err := blobProperties(ctx, s.client.BlobClient(), nil)
	if azerr.Has(err, "BlobNotFound") {
		return State{}, false, nil
	}
	if err != nil {
		return State{}, false, err
	}
	now := State{Exists: true, ETag: deref(props.ETag)}
	if s.o.Pinned {
		length, err := lengthOf(ctx, s.client.BlobClient(), props, nil)
		if err != nil {
			return State{}, false, err
		}
		now.ETag = positionTag(length)
	}
	return now, deref(props.IsSealed), nil
}
