package blobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// SnapshotOptions tunes Snapshot. The zero value is the default.
type SnapshotOptions struct {
	// Conditions must hold for the version that the snapshot shows. They are those of a read, so all combinations are
	// legal. Defaults to none.
	Conditions optimistic.Conditions

	// Metadata is the snapshot's, instead of the blob's. Defaults to the blob's.
	Metadata map[string]string

	optimistic.SendOptions

	_ struct{}
}

// validateRead validates the conditions of a read, on which all of them can be combined.
func validateRead(c optimistic.Conditions) error {
	if c.IfNoneMatch == azcore.ETagAny {
		return errors.New("conditions: If-None-Match * never holds for a blob that has to exist")
	}
	return errors.Join(optimistic.Conditions{IfMatch: c.IfMatch}.Validate(), optimistic.Conditions{IfNoneMatch: c.IfNoneMatch}.Validate())
}

// SnapshotResult describes the snapshot that was taken, and the cost. ETag is the version of the blob that it shows.
type SnapshotResult struct {
	optimistic.Result

	// Snapshot is the snapshot's id: the time at which it was taken, by the service's clock and in its format.
	Snapshot string

	// Twins are the ids of further snapshots that this call has left behind, because a request whose response was lost
	// was carried out. They show the same version and can be deleted.
	Twins []string
}

// Snapshot takes a snapshot of a blob of any type. If responses are lost it still leaves only one, with the exceptions
// below.
//
// A snapshot does not change its blob, so no condition prevents the request from being carried out again. Blind
// repetition would leave a second snapshot, which nobody knows of, which is billed, and which prevents the deletion of
// the blob. So the snapshot's metadata have an id (the newest entry of the blob's lineage), and before the request is
// sent again the snapshots are listed: one with the id is ours. A request gives either all or none of the snapshot's
// metadata, so the blob's are read first and the request is conditional on that version. If the version was replaced
// meanwhile, both are repeated, up to 12 times in 30 s, unless IfMatch names it.
//
// Errors are those of Update: *ConflictError if a condition did not hold, with Reason Gone if the blob does not exist
// and IfMatch names a version; *NotFoundError; and *UnknownError if a response was lost and the list could not be read,
// or shows nothing because of NoLineage or the metadata have no room for an id.
//
// A second snapshot remains if a request is carried out after the list was read. It is in Twins if it exists before the
// end of the call; a later one is not noticed. (There is none once the version was replaced.) The same holds for a
// request that an intermediary silently delivers twice.
//
// Cost: 2 requests, and 2 more each time the version was replaced. After each lost response, and once at the end of
// such a call, it lists the snapshots (1 request per 5,000), which requires permission to list the container.
func Snapshot(ctx context.Context, c *container.Client, name string, opts *SnapshotOptions) (_ SnapshotResult, err error) {
	if err := sealed.NotNil("snapshot", "c", c); err != nil {
		return SnapshotResult{}, err
	}
	o := ptr.Value(opts)
	if err := errors.Join(validateRead(o.Conditions), meta.ValidateAll(o.Metadata)); err != nil {
		return SnapshotResult{}, err
	}
	client := c.NewBlobClient(name)
	ctx, call, end, err := begin.On(ctx, o.SendOptions, "blobs.Snapshot", "snapshot", client)
	if err != nil {
		return SnapshotResult{}, err
	}
	defer end(&err)
	m := o.Conditions.IfMatch
	s := &snapshotting{
		Loop:      protocol.Loop{Call: call, Budget: protocol.ConflictBudget(attempts, 0, retry.Backoff{Base: 20 * time.Millisecond}), Final: m != "" && m != azcore.ETagAny},
		container: c, name: name, client: client, o: o,
	}
	s.Next, s.Surrender = s.next, s.surrender
	if err = s.Run(ctx); err == nil {
		err = s.noticeTwins(ctx)
	}
	return SnapshotResult{Result: optimistic.Result(s.Finish()), Snapshot: s.taken, Twins: s.twins}, err
}

// snapshotting is one snapshot in progress.
type snapshotting struct {
	protocol.Loop
	container *container.Client
	name      string
	client    *blob.Client
	o         SnapshotOptions

	taking protocol.Change // the write that took it
	taken  string
	twins  []string
}

// next reads the version that the snapshot will show, and returns the request that takes it.
func (s *snapshotting) next(ctx context.Context, _ *protocol.Refusal) (*protocol.Change, error) {
	base, metadata, err := s.base(ctx)
	if err != nil {
		return nil, err
	}
	w, err := s.write(base, metadata)
	if err != nil {
		return nil, err
	}
	s.Res.Attempts++
	w.Won = func(azcore.ETag) {
		s.taking = w
		s.Res.Changed, s.Res.ETag, s.Res.WriteID = true, base.ETag, w.ID
	}
	return &w, nil
}

func (s *snapshotting) surrender(ctx context.Context, open *protocol.Refusal) error {
	open.Conflict.Attempts, open.Conflict.Elapsed = s.Res.Attempts, time.Since(s.Began)
	return s.shown(ctx, open.Conflict)
}

// base reads the version that the snapshot will show. The service checks all of the caller's conditions here; the
// snapshot's own condition is on the version that was read.
func (s *snapshotting) base(ctx context.Context) (protocol.State, map[string]string, error) {
	props, err := protocol.Again(ctx, s.Call, func(ctx context.Context) (blob.GetPropertiesResponse, error) {
		return anyblob.PropertiesIf(ctx, s.client, anyblob.AccessConditions(s.o.Conditions))
	})
	out := azerr.Classify(err)
	switch {
	case err == nil:
	case anyblob.BaseGone(s.o.Conditions, err):
		s.Preempted(ctx, err)
		return protocol.State{}, nil, &optimistic.ConflictError{
			Op: s.Op, Resource: s.Resource, Reason: azerr.Gone, Base: s.o.Conditions.IfMatch, Err: azerr.Clean(err),
			Attempts: s.Res.Attempts, Elapsed: time.Since(s.Began),
		}
	case out.Kind == azerr.NotFound:
		return protocol.State{}, nil, &optimistic.NotFoundError{Op: s.Op, Resource: s.Resource, Err: azerr.Clean(err)}
	case out.Kind == azerr.Conflict:
		s.Preempted(ctx, err)
		return protocol.State{}, nil, s.shown(ctx, &optimistic.ConflictError{
			Op: s.Op, Resource: s.Resource, Reason: azerr.Changed, Base: s.o.Conditions.IfMatch, Err: azerr.Clean(err),
			Attempts: s.Res.Attempts, Elapsed: time.Since(s.Began),
		})
	default:
		return protocol.State{}, nil, s.Fail(err)
	}
	metadata, lineage := meta.Split(props.Metadata)
	return protocol.State{Exists: true, ETag: ptr.Value(props.ETag), Lineage: lineage}, metadata, nil
}

// shown adds the current version to a conflict.
func (s *snapshotting) shown(ctx context.Context, conflict *optimistic.ConflictError) error {
	now, err := s.Look(ctx, func(ctx context.Context) (protocol.State, error) { return anyblob.Look(ctx, s.client) })
	if err != nil {
		return conflict
	}
	if conflict.Current = now.ETag; !now.Exists {
		conflict.Reason = azerr.Gone
	}
	return conflict
}

func (s *snapshotting) write(base protocol.State, metadata map[string]string) (protocol.Change, error) {
	id, lineage := s.Stamp(base, protocol.Intent{})
	if s.o.Metadata != nil {
		metadata = meta.Merge(nil, s.o.Metadata)
	}
	stamped, _, err := meta.Join(metadata, lineage)
	if err != nil {
		return protocol.Change{}, s.Fail(err)
	}
	if stamped[optimistic.LineageKey] == nil {
		id = "" // no room for an id
	}
	w := protocol.Change{Base: base, ID: id}
	opts := blob.CreateSnapshotOptions{
		Metadata:         stamped,
		AccessConditions: anyblob.WriteConditions(base, sealed.Conditions{IfTags: s.o.Conditions.IfTags, LeaseID: s.o.Conditions.LeaseID}),
	}
	var before atomic.Bool
	w.Send = func(ctx context.Context) (azcore.ETag, error) {
		if before.Swap(true) {
			_, ours, err := s.list(ctx, id)
			switch {
			case err != nil:
				return "", err
			case len(ours) > 0:
				s.taken = ours[0]
				s.Resolved(ctx)
				return base.ETag, nil
			case id == "":
				return "", protocol.ErrNotMet // sending it again may leave two snapshots; the look that follows reports an unknown outcome
			}
		}
		o := opts
		resp, err := wire.Request(ctx, "Snapshot Blob", func(ctx context.Context) (blob.CreateSnapshotResponse, error) {
			return s.client.CreateSnapshot(ctx, &o)
		})
		s.taken, err = protocol.Sent("x-ms-snapshot", resp.Snapshot, err)
		return base.ETag, err
	}
	w.Look = func(ctx context.Context) (protocol.State, error) {
		now, ours, err := s.list(ctx, id)
		switch {
		case err != nil:
		case len(ours) > 0:
			s.taken = ours[0]
			now = now.Decide(protocol.Committed, "")
		case id != "" && now.Exists && now.ETag != base.ETag:
			// A request under way can no longer be carried out, and one that was is in the list.
			now = now.Decide(protocol.Refused, "")
		}
		return now, err
	}
	return w, nil
}

// list returns the blob's version and the snapshots with the id, oldest first. The blob and its snapshots come first in
// the list of all names that begin with its own.
func (s *snapshotting) list(ctx context.Context, id string) (protocol.State, []string, error) {
	var now protocol.State
	var ours []string
	pages := s.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: &s.name, Include: container.ListBlobsInclude{Snapshots: true, Metadata: true},
	})
	for pages.More() {
		page, err := wire.Request(ctx, "List Blobs", pages.NextPage)
		if err != nil {
			return protocol.State{}, nil, err
		}
		for _, item := range page.Segment.BlobItems {
			if ptr.Value(item.Name) != s.name {
				return now, ours, nil
			}
			if ptr.Value(item.Snapshot) == "" {
				now.Exists = true
				if item.Properties != nil {
					// Listings omit the quotes.
					now.ETag = azcore.ETag(`"` + strings.Trim(string(ptr.Value(item.Properties.ETag)), `"`) + `"`)
				}
				continue
			}
			if _, lineage := meta.Split(item.Metadata); id != "" && lineage.Has(id) {
				ours = append(ours, *item.Snapshot)
			}
		}
	}
	return now, ours, nil
}

// noticeTwins lists the snapshots again if a response was lost, in case more than one request was carried out.
func (s *snapshotting) noticeTwins(ctx context.Context) error {
	if s.Res.Ambiguous == 0 {
		return nil
	}
	_, err := s.Look(ctx, func(ctx context.Context) (protocol.State, error) {
		_, ours, err := s.list(ctx, s.taking.ID)
		s.twins = nil
		for _, snapshot := range ours {
			if snapshot != s.taken {
				s.twins = append(s.twins, snapshot)
			}
		}
		return protocol.State{}, err
	})
	if err != nil {
		return s.Unknown(s.taking, fmt.Sprintf("the snapshot %s was taken, and nothing shows whether a second one was", s.taken), err)
	}
	return nil
}
