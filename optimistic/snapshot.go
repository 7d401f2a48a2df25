package optimistic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

// SnapshotOptions tunes Snapshot. The zero value is the default.
type SnapshotOptions struct {
	// Conditions must hold for the version of which the snapshot is taken. They are those of a read, so every
	// combination is legal. Defaults to none.
	Conditions Conditions

	// Metadata is the snapshot's, instead of the blob's. Defaults to the blob's.
	Metadata map[string]string

	// CPK and EncryptionScope are passed with every request.
	CPK             *blob.CPKInfo
	EncryptionScope *blob.CPKScopeInfo

	// Attempts bounds how often a version is tried that then turns out to have been replaced; negative means no bound.
	// Defaults to 12.
	Attempts int

	// Elapsed bounds the time spent on that; negative means no bound. Defaults to 30 s.
	Elapsed time.Duration

	// Backoff spaces the attempts. Defaults to full jitter of 20 ms, doubling, at most 2 s.
	Backoff retry.Backoff

	Sending

	_ struct{}
}

func (o *SnapshotOptions) withDefaults() (SnapshotOptions, error) {
	var out SnapshotOptions
	if o != nil {
		out = *o
	}
	out.Attempts = cmp.Or(out.Attempts, 12)
	out.Elapsed = cmp.Or(out.Elapsed, 30*time.Second)
	out.Backoff = orBackoff(out.Backoff, 20*time.Millisecond, 2*time.Second)
	if err := out.Conditions.validateRead(); err != nil {
		return out, err
	}
	if err := validateMetadata(out.Metadata); err != nil {
		return out, err
	}
	var err error
	out.Sending, err = out.Sending.withDefaults()
	return out, err
}

// validateRead is validate for a request that reads, where all conditions may stand side by side.
func (c Conditions) validateRead() error {
	if c.IfNoneMatch == azcore.ETagAny {
		return errors.New("conditions: If-None-Match * never holds for what has to exist")
	}
	return errors.Join(Conditions{IfMatch: c.IfMatch}.validate(), Conditions{IfNoneMatch: c.IfNoneMatch}.validate())
}

// SnapshotResult tells which snapshot was taken and what it took. ETag is the version of the blob that it shows.
type SnapshotResult struct {
	Result

	// Snapshot is the snapshot's id: the time at which it was taken, of the service's clock, as the service writes it.
	Snapshot string

	// Twins are further snapshots that this call has left behind, because a request whose answer was lost was carried
	// out after all. They show the same version, and can be deleted.
	Twins []string
}

// Snapshot takes a snapshot of a blob, of any type, and leaves one behind even if answers get lost.
//
// A snapshot changes nothing about its blob, so no condition keeps the request from being carried out again: repeated
// blindly it leaves a second snapshot that nobody knows of, is billed, and stands in the way of deleting the blob. So
// the snapshot's metadata carries an id (as the newest entry of the lineage that it has from the blob), and before the
// request is sent again the snapshots are listed: one with the id is ours. The metadata of a snapshot is given whole or
// not at all, so the blob's is read first and the request is conditional on that version; if it has been replaced
// meanwhile, both are done again, unless IfMatch pins it.
//
// Errors are those of Update: *ConflictError when a condition did not hold, with reason Gone when the blob is missing and
// IfMatch names a version; *NotFoundError; *UnknownError when a response was lost and the list could not be read or, with a
// negative LineageSize or metadata too full for an id, shows nothing.
//
// What remains: a request that is carried out after the list was read leaves a second one, which is in Twins when it
// shows up before the end of the call, and unnoticed if it is later still. (With the version replaced it cannot happen.)
// The same goes for a request that an intermediary delivers twice, without any sign of trouble.
//
// Cost: 2 requests; 2 more each time the version was replaced; a list (one request per 5,000 snapshots) per ambiguous
// answer and one at the end of a call that had any. It takes the right to list the container then.
func Snapshot(ctx context.Context, c *container.Client, name string, opts *SnapshotOptions) (SnapshotResult, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return SnapshotResult{}, err
	}
	client := c.NewBlobClient(name)
	s := &snapshotting{
		call: newCall("snapshot", resource.Path(client.URL()), o.Sending, nil), container: c, name: name, client: client, o: o,
	}
	err = s.run(ctx)
	return SnapshotResult{Result: s.finish(), Snapshot: s.taken, Twins: s.twins}, err
}

// snapshotting is one snapshot under way.
type snapshotting struct {
	*call
	container *container.Client
	name      string
	client    *blob.Client
	o         SnapshotOptions

	taken string
	twins []string
}

func (s *snapshotting) run(ctx context.Context) error {
	budget := retry.Budget{Attempts: s.o.Attempts, Elapsed: s.o.Elapsed, Backoff: s.o.Backoff}.Start()
	for {
		base, metadata, err := s.base(ctx)
		if err != nil {
			return err
		}
		w, err := s.write(base, metadata)
		if err != nil {
			return err
		}
		s.res.Attempts++
		_, err = s.commit(ctx, w)
		if err == nil {
			s.res.Changed, s.res.ETag, s.res.WriteID = true, base.ETag, w.id
			return s.noticeTwins(ctx, w)
		}
		conflict, ok := errors.AsType[*ConflictError](err)
		if !ok {
			return err
		}
		s.res.Conflicts++
		conflict.Attempts, conflict.Elapsed = s.res.Attempts, time.Since(s.began)
		if m := s.o.Conditions.IfMatch; m != "" && m != azcore.ETagAny {
			return s.shown(ctx, conflict)
		}
		if wait := budget.Next(ctx, 0); ctx.Err() != nil {
			return s.fail(wait)
		} else if wait != nil {
			return s.shown(ctx, conflict)
		}
	}
}

// base reads the version that the snapshot is to show. The caller's conditions are judged here, all of them, by the
// service; the snapshot's own condition on the version read then carries them over.
func (s *snapshotting) base(ctx context.Context) (State, map[string]string, error) {
	props, err := again(ctx, s.call, func(ctx context.Context) (blob.GetPropertiesResponse, error) {
		CountRequest(ctx)
		return s.client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: accessConditions(s.o.Conditions), CPKInfo: s.o.CPK})
	})
	out := azerr.Classify(err)
	switch {
	case err == nil:
	case s.o.Conditions.gone(err):
		s.res.Conflicts++
		return State{}, nil, &ConflictError{
			Op: s.op, Resource: s.resource, Reason: azerr.Gone, Base: s.o.Conditions.IfMatch, Err: azerr.Clean(err),
			Attempts: s.res.Attempts, Elapsed: time.Since(s.began),
		}
	case out.Kind == azerr.NotFound:
		return State{}, nil, &NotFoundError{Op: s.op, Resource: s.resource, Err: azerr.Clean(err)}
	case out.Kind == azerr.Conflict:
		s.res.Conflicts++
		return State{}, nil, s.shown(ctx, &ConflictError{
			Op: s.op, Resource: s.resource, Reason: azerr.Changed, Base: s.o.Conditions.IfMatch, Err: azerr.Clean(err),
			Attempts: s.res.Attempts, Elapsed: time.Since(s.began),
		})
	default:
		return State{}, nil, s.fail(err)
	}
	metadata, lineage := splitMetadata(props.Metadata)
	return State{Exists: true, ETag: deref(props.ETag), Lineage: lineage}, metadata, nil
}

// shown adds to a conflict the version that is there now.
func (s *snapshotting) shown(ctx context.Context, conflict *ConflictError) error {
	now, err := s.look(ctx, func(ctx context.Context) (State, error) { return lookAtBlob(ctx, s.client, s.o.CPK) })
	if err != nil {
		return conflict
	}
	if conflict.Current = now.ETag; !now.Exists {
		conflict.Reason = azerr.Gone
	}
	return conflict
}

func (s *snapshotting) write(base State, metadata map[string]string) (write, error) {
	id, lineage := s.stamp(base, intent{})
	if s.o.Metadata != nil {
		metadata = mergeMetadata(nil, s.o.Metadata)
	}
	stamped, err := joinMetadata(metadata, lineage)
	if err != nil {
		return write{}, s.fail(err)
	}
	if stamped[LineageKey] == nil {
		id = "" // no room: nothing to find it by
	}
	w := write{base: base, id: id}
	opts := blob.CreateSnapshotOptions{
		Metadata: stamped, CPKInfo: s.o.CPK, CPKScopeInfo: s.o.EncryptionScope,
		AccessConditions: writeConditions(base, Conditions{IfTags: s.o.Conditions.IfTags, LeaseID: s.o.Conditions.LeaseID}),
	}
	var before atomic.Bool
	w.send = func(ctx context.Context) (azcore.ETag, error) {
		if before.Swap(true) {
			_, ours, err := s.list(ctx, id)
			switch {
			case err != nil:
				return "", err
			case len(ours) > 0:
				s.taken = ours[0]
				s.res.Resolved++
				return base.ETag, nil
			case id == "":
				return "", notMet() // to send it again may leave two; the look that follows says that nothing shows
			}
		}
		CountRequest(ctx)
		o := opts
		resp, err := s.client.CreateSnapshot(ctx, &o)
		if err == nil {
			s.taken = deref(resp.Snapshot)
		}
		return base.ETag, err
	}
	w.look = func(ctx context.Context) (State, error) {
		now, ours, err := s.list(ctx, id)
		switch {
		case err != nil:
		case len(ours) > 0:
			s.taken = ours[0]
			now.Lineage = lineageOf(Entry{ID: id, Base: base.ETag})
		case id != "" && now.Exists && now.ETag != base.ETag:
			// What is under way can no longer meet its condition, and if it had met it, it would be in the list.
			now.Lineage = lineageOf(Entry{ID: "another's", Base: base.ETag})
		}
		return now, err
	}
	return w, nil
}

// list returns the blob's version and the snapshots with the id, oldest first. The blob and its snapshots come first in
// the list of all names that begin with its own.
func (s *snapshotting) list(ctx context.Context, id string) (State, []string, error) {
	var now State
	var ours []string
	pages := s.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: &s.name, Include: container.ListBlobsInclude{Snapshots: true, Metadata: true},
	})
	for pages.More() {
		page, err := request(ctx, pages.NextPage)
		if err != nil {
			return State{}, nil, err
		}
		for _, item := range page.Segment.BlobItems {
			if deref(item.Name) != s.name {
				return now, ours, nil
			}
			if deref(item.Snapshot) == "" {
				now.Exists = true
				if item.Properties != nil {
					// Listings leave out the quotes.
					now.ETag = azcore.ETag(`"` + strings.Trim(string(deref(item.Properties.ETag)), `"`) + `"`)
				}
				continue
			}
			if _, lineage := splitMetadata(item.Metadata); id != "" && lineage.Has(id) {
				ours = append(ours, *item.Snapshot)
			}
		}
	}
	return now, ours, nil
}

// noticeTwins looks, after an answer was lost, whether more than one request was carried out.
func (s *snapshotting) noticeTwins(ctx context.Context, w write) error {
	if s.res.Ambiguous == 0 {
		return nil
	}
	_, err := s.look(ctx, func(ctx context.Context) (State, error) {
		_, ours, err := s.list(ctx, w.id)
		s.twins = nil
		for _, snapshot := range ours {
			if snapshot != s.taken {
				s.twins = append(s.twins, snapshot)
			}
		}
		return State{}, err
	})
	if err != nil {
		return s.unknown(w, fmt.Sprintf("the snapshot %s was taken, and nothing shows whether a second one was", s.taken), err)
	}
	return nil
}
