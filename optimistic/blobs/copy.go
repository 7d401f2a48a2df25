package blobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// CopyOptions tunes Copy. The zero value replaces whatever is at the destination: last writer wins.
type CopyOptions struct {
	// Conditions on the destination decide which writer wins, as in Upload: IfMatch replaces one version only, and
	// IfNoneMatch "*" only creates. Defaults to none.
	Conditions optimistic.Conditions

	// Source are conditions on the source. LeaseID is ignored, because the source is only read. Defaults to the version
	// that the source has when the copy starts.
	Source optimistic.Conditions

	// Metadata replaces the source's, and saves the request that reads them. Defaults to the source's, with its lineage:
	// an OperationID applied to the source counts as applied to the copy.
	Metadata map[string]string

	// Tags and Tier are the destination's; index tags are not copied by the service. Default to none and to the
	// account's.
	Tags map[string]string
	Tier *blob.AccessTier

	// Wait makes Copy return when the copy has ended instead of when it has started. Copy then asks for the status
	// every Poll. Wait defaults to false, Poll to 1 s.
	Wait bool
	Poll time.Duration

	optimistic.SendOptions

	_ struct{}
}

// CopyResult describes the copy that was started, and the cost.
type CopyResult struct {
	optimistic.Result

	CopyID string
	Status blob.CopyStatusType // pending, success, aborted or failed, at the latest look

	Source     string      // path of the source
	SourceETag azcore.ETag // the version of the source; empty with Metadata
}

// attempts bounds how often Copy, Snapshot and Upload begin again because what they have read or staged was replaced meanwhile.
const attempts = 12

// ErrCopyFailed means that Copy waited for a copy that failed or was aborted.
var ErrCopyFailed = errors.New("copy failed")

// Copy starts a copy of source to destination, under conditions on both. source is a blob of the same account, or its
// client has a shared access signature in its URL. Content, headers and metadata are those of one version of the
// source.
//
// The metadata contain the lineage. It resolves lost responses, and distinguishes the copy from one that another client
// has started. A copy is started at most once, and ErrConflict means that it was not started.
//
// There are two exceptions, in which a copy that was started looks like a conflict. A request is silently delivered twice by an
// intermediary, and the call ends before the look that follows the refusal of the second delivery, or another client writes to the
// destination or to the source before that look; a changed source is then copied again. Or the response to a copy that only creates
// is lost, and a program outside azconc copies another blob with a lineage to the destination before the look.
//
// Errors are those of Update. Reason is SourceChanged if a condition on the source failed, or if the source changed
// before each of 12 starts. With Wait, a copy that fails or is aborted is ErrCopyFailed, with the result set.
// After an error this call has not changed the destination, except after ErrOutcomeUnknown and after an error while
// waiting.
//
// Cost: 2 requests, 1 with Metadata; 1 per Poll.
func Copy(ctx context.Context, destination, source *blob.Client, opts *CopyOptions) (_ CopyResult, err error) {
	if err := sealed.NotNil("copy", "source", source); err != nil {
		return CopyResult{}, err
	}
	o := ptr.Value(opts)
	o.Poll = cmp.Or(o.Poll, time.Second)
	if err := errors.Join(o.Conditions.Validate(), o.Source.Validate(), meta.ValidateAll(o.Metadata), validTags(o.Tags)); err != nil {
		return CopyResult{}, err
	}
	if o.Poll < 0 {
		return CopyResult{}, fmt.Errorf("CopyOptions.Poll: %v is negative", o.Poll)
	}
	ctx, call, end, err := begin.On(ctx, o.SendOptions, "blobs.Copy", "copy", destination)
	if err != nil {
		return CopyResult{}, err
	}
	defer end(&err)
	c := &copying{Loop: protocol.Loop{Call: call, Budget: protocol.ConflictBudget(attempts, -1, retry.Backoff{Base: 20 * time.Millisecond})}, to: destination, from: source, o: o}
	c.out.Source = resource.Path(source.URL())
	c.Next, c.Refused, c.Loop.Surrender = c.next, c.refused, c.surrender
	if err = c.Run(ctx); err == nil && o.Wait {
		err = c.wait(ctx)
	}
	c.out.Result = optimistic.Result(c.Finish())
	return c.out, err
}

// copying is one copy in progress.
type copying struct {
	protocol.Loop
	to, from *blob.Client
	o        CopyOptions
	out      CopyResult
}

// next reads the source, unless its metadata are given, and returns the start of the copy.
func (c *copying) next(ctx context.Context, _ *protocol.Refusal) (*protocol.Change, error) {
	source, metadata, lineage := c.o.Source, meta.Merge(nil, c.o.Metadata), protocol.Lineage{}
	if c.o.Metadata == nil {
		props, err := protocol.Again(ctx, c.Call, func(ctx context.Context) (blob.GetPropertiesResponse, error) {
			return anyblob.Properties(ctx, c.from)
		})
		if azerr.Classify(err).Kind == azerr.NotFound {
			return nil, &optimistic.NotFoundError{Op: c.Op, Resource: resource.Path(c.from.URL()), Err: azerr.Clean(err)}
		}
		if err != nil {
			return nil, c.Fail(err)
		}
		now := ptr.Value(props.ETag)
		held := source.Check(c.Op, c.Resource, optimistic.State{Exists: true, ETag: now, LastModified: ptr.Value(props.LastModified)})
		if held != nil || now == c.out.SourceETag {
			return nil, &optimistic.ConflictError{
				Op: c.Op, Resource: resource.Path(c.from.URL()), Reason: azerr.SourceChanged, Base: source.IfMatch, Current: now,
				Attempts: c.Res.Attempts, Elapsed: time.Since(c.Began),
			}
		}
		metadata, lineage = meta.Split(props.Metadata)
		source, c.out.SourceETag = optimistic.Conditions{IfMatch: now, IfTags: source.IfTags}, now
	}
	c.Res.Attempts++
	w, err := c.write(source, metadata, lineage)
	return &w, err
}

// refused starts the copy again only if the source has changed since its metadata were read.
func (c *copying) refused(w protocol.Change, err error) (open *protocol.Refusal, again bool, cause error) {
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if !ok {
		return nil, false, err
	}
	if azerr.Classify(conflict.Err).Reason == azerr.SourceChanged {
		conflict.Reason = azerr.SourceChanged
	}
	again = conflict.Reason == azerr.SourceChanged && c.o.Metadata == nil && c.o.Source.IfMatch == ""
	return &protocol.Refusal{Change: w, Conflict: conflict}, again, err
}

// surrender names the source in a conflict that concerns it.
func (c *copying) surrender(ctx context.Context, open *protocol.Refusal) error {
	if open.Conflict.Reason != azerr.SourceChanged {
		return c.Call.Surrender(ctx, open)
	}
	base := c.o.Source.IfMatch
	if c.o.Metadata == nil {
		base = c.out.SourceETag
	}
	open.Conflict.Resource, open.Conflict.Base, open.Conflict.Attempts = resource.Path(c.from.URL()), base, c.Res.Attempts
	return open.Conflict
}

// write returns the start of the copy as a write to the destination.
func (c *copying) write(source optimistic.Conditions, metadata map[string]string, lineage protocol.Lineage) (protocol.Change, error) {
	var w protocol.Change
	w.Base, w.AnyBase = anyblob.BaseIn(c.o.Conditions)
	base := protocol.State{ETag: w.Base.ETag, Lineage: lineage}
	if w.AnyBase {
		base.ETag = protocol.UnknownBase
	}
	w.ID, lineage = c.StampAs(protocol.NewWriteID(), base, protocol.Intent{}, 0)
	stamped, stored, err := meta.Join(metadata, lineage)
	if err != nil {
		return protocol.Change{}, c.Fail(err)
	}
	if !stored.Has(w.ID) {
		w.ID = "" // no room for it, or none is asked for
	}
	w.Look = func(ctx context.Context) (protocol.State, error) {
		props, err := c.status(ctx)
		if err != nil || props == nil {
			return protocol.State{}, err
		}
		_, lineage := meta.Split(props.Metadata)
		return protocol.State{Exists: true, ETag: ptr.Value(props.ETag), Lineage: lineage}, nil
	}
	opts := blob.StartCopyFromURLOptions{
		Metadata: stamped, BlobTags: c.o.Tags, Tier: c.o.Tier, AccessConditions: anyblob.AccessConditions(c.o.Conditions),
		SourceModifiedAccessConditions: &blob.SourceModifiedAccessConditions{
			SourceIfMatch: ptr.Optional(source.IfMatch), SourceIfNoneMatch: ptr.Optional(source.IfNoneMatch), SourceIfTags: ptr.Optional(source.IfTags),
			SourceIfModifiedSince: ptr.Optional(source.IfModifiedSince), SourceIfUnmodifiedSince: ptr.Optional(source.IfUnmodifiedSince),
		},
	}
	w.Send = func(ctx context.Context) (azcore.ETag, error) {
		o := opts
		resp, err := wire.Request(ctx, "Copy Blob", func(ctx context.Context) (blob.StartCopyFromURLResponse, error) {
			return c.to.StartCopyFromURL(ctx, c.from.URL(), &o)
		})
		id, err := protocol.Sent("x-ms-copy-id", resp.CopyID, err)
		status, err := protocol.Sent("x-ms-copy-status", resp.CopyStatus, err)
		if err == nil {
			c.out.CopyID, c.out.Status = id, status
		}
		return ptr.Value(resp.ETag), err
	}
	w.Send = c.lookForOwn(w)
	return w, nil
}

// lookForOwn wraps the start: before a repetition it looks whether the copy has started. While that is pending, the service
// refuses the repetition; after that, it would start again. If neither an id nor the condition shows whether it has started, it is
// not repeated.
func (c *copying) lookForOwn(w protocol.Change) protocol.Write {
	send, sent := w.Send, false
	return func(ctx context.Context) (azcore.ETag, error) {
		if sent {
			now, err := w.Look(ctx)
			if err != nil {
				return "", err
			}
			if w.ID == "" && w.AnyBase || now.Lineage.Has(w.ID) {
				return "", protocol.ErrNotMet // Commit looks again, and finds the entry if there is one
			}
		}
		sent = true
		return send(ctx)
	}
}

// status reads the destination's properties. It returns nil if the destination does not exist.
func (c *copying) status(ctx context.Context) (*blob.GetPropertiesResponse, error) {
	props, err := anyblob.Properties(ctx, c.to)
	if azerr.Has(err, "BlobNotFound") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.out.CopyID, c.out.Status = ptr.Value(props.CopyID), ptr.Value(props.CopyStatus)
	return &props, nil
}

// wait asks for the status until the copy has ended.
func (c *copying) wait(ctx context.Context) error {
	id := c.out.CopyID
	for c.out.Status == blob.CopyStatusTypePending {
		if err := retry.Sleep(ctx, c.o.Poll); err != nil {
			return c.Fail(fmt.Errorf("the copy %s is still pending: %w", id, err))
		}
		props, err := protocol.Again(ctx, c.Call, c.status)
		switch {
		case err != nil:
			return c.Fail(err)
		case props == nil:
			return &optimistic.ConflictError{Op: c.Op, Resource: c.Resource, Reason: azerr.Gone, Base: c.Res.ETag}
		case c.out.CopyID != id:
			c.out.CopyID, c.out.Status = id, ""
			return &optimistic.ConflictError{Op: c.Op, Resource: c.Resource, Reason: azerr.Changed, Base: c.Res.ETag, Current: ptr.Value(props.ETag)}
		}
		c.Res.ETag = ptr.Value(props.ETag)
		if s := c.out.Status; s == blob.CopyStatusTypeAborted || s == blob.CopyStatusTypeFailed {
			return c.Fail(fmt.Errorf("%w: %s %s", ErrCopyFailed, s, ptr.Value(props.CopyStatusDescription)))
		}
	}
	return nil
}
