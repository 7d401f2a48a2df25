package blobservice

import (
	"net/http"
	"slices"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// at returns the snapshot of that time, or nil.
func (b *blobState) at(snapshot string) *blobState {
	if i := slices.IndexFunc(b.snapshots, func(s *blobState) bool { return s.snapshot == snapshot }); i >= 0 {
		return b.snapshots[i]
	}
	return nil
}

// snapshotsNamed refuses a snapshot whose name is not a time.
func snapshotsNamed(r *storage.Request) *storage.Answer {
	for _, name := range []string{"snapshot", "prevsnapshot"} {
		if _, err := time.Parse(storage.SnapshotTime, r.Query.Get(name)); err != nil && r.Query.Get(name) != "" {
			return storage.InvalidQuery()
		}
	}
	return nil
}

// snapshot does not change the blob's version, and needs no lease id, because it only reads.
func (s *Service) snapshot(r *storage.Request, b *blobState) *storage.Answer {
	if a := b.Lease.Check(r, "Blob", false); a != nil {
		return a
	}
	if b.tier == archive {
		return archived()
	}
	metadata, a := storage.MetadataOf(r)
	if a != nil {
		return a
	}
	copied := *b
	copied.Lease, copied.snapshots, copied.staged = storage.Lease{}, nil, nil
	copied.Pages = b.Pages.Clone()
	if len(metadata) > 0 {
		// With metadata of its own the snapshot is another version than its base (REST: "Snapshot Blob").
		copied.metadata, copied.ETag, copied.LastModified = metadata, s.NewETag(), storage.Now()
	}
	moment := time.Now().UTC().Truncate(100) // the service's resolution
	if !moment.After(s.snapped) {
		moment = s.snapped.Add(100) // no two snapshots of the account have the same time
	}
	s.snapped = moment
	copied.snapshot = moment.Format(storage.SnapshotTime)
	b.snapshots = append(b.snapshots, &copied)
	return storage.OK(http.StatusCreated).Version(&copied.Versioned).Set("x-ms-snapshot", copied.snapshot)
}

// deleteSnapshot deletes a snapshot; a lease on the blob does not cover it.
func (s *Service) deleteSnapshot(r *storage.Request, b *blobState, cond conditions) *storage.Answer {
	one := b.at(r.Query.Get("snapshot"))
	switch {
	case one == nil:
		return noSuchBlob()
	case r.Header.Get("X-Ms-Delete-Snapshots") != "":
		return storage.InvalidHeader("x-ms-delete-snapshots", r.Header.Get("X-Ms-Delete-Snapshots"))
	}
	if a := cond.write(one, false); a != nil {
		return a
	}
	b.snapshots = slices.DeleteFunc(slices.Clone(b.snapshots), func(s *blobState) bool { return s == one })
	return deleted()
}
