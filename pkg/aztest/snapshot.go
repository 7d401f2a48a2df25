package aztest

import (
	"net/http"
	"slices"
	"time"
)

// snapshotTime is the format of the time that names a snapshot.
const snapshotTime = "2006-01-02T15:04:05.0000000Z"

// at returns the snapshot of that time, or nil.
func (b *blobState) at(snapshot string) *blobState {
	if i := slices.IndexFunc(b.snapshots, func(s *blobState) bool { return s.snapshot == snapshot }); i >= 0 {
		return b.snapshots[i]
	}
	return nil
}

// snapshotsNamed refuses a snapshot whose name is not a time.
func snapshotsNamed(r *request) *answer {
	for _, name := range []string{"snapshot", "prevsnapshot"} {
		if _, err := time.Parse(snapshotTime, r.query.Get(name)); err != nil && r.query.Get(name) != "" {
			return invalidQuery()
		}
	}
	return nil
}

func invalidQuery() *answer {
	return fail(http.StatusBadRequest, "InvalidQueryParameterValue", "Value for one of the query parameters specified in the request URI is invalid.")
}

// snapshot does not change the blob's version, and needs no lease id, because it only reads.
func (s *Service) snapshot(r *request, b *blobState) *answer {
	if a := b.lease.check(r, "Blob", false); a != nil {
		return a
	}
	if b.tier == archive {
		return fail(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob.")
	}
	metadata, a := metadataOf(r)
	if a != nil {
		return a
	}
	copied := *b
	copied.lease, copied.snapshots, copied.staged = lease{}, nil, nil
	copied.Pages = b.Pages.Clone()
	if len(metadata) > 0 {
		// With metadata of its own the snapshot is another version than its base (REST: "Snapshot Blob").
		copied.metadata, copied.etag, copied.lastModified = metadata, s.newETag(), now()
	}
	moment := time.Now().UTC().Truncate(100) // the service's resolution
	if !moment.After(s.snapped) {
		moment = s.snapped.Add(100) // no two snapshots of the account have the same time
	}
	s.snapped = moment
	copied.snapshot = moment.Format(snapshotTime)
	b.snapshots = append(b.snapshots, &copied)
	return ok(http.StatusCreated).version(copied.etag, copied.lastModified).set("x-ms-snapshot", copied.snapshot)
}

// deleteSnapshot deletes a snapshot; a lease on the blob does not cover it.
func (s *Service) deleteSnapshot(r *request, b *blobState, cond conditions) *answer {
	one := b.at(r.query.Get("snapshot"))
	switch {
	case one == nil:
		return noSuchBlob()
	case r.header.Get("X-Ms-Delete-Snapshots") != "":
		return invalidHeader("x-ms-delete-snapshots", r.header.Get("X-Ms-Delete-Snapshots"))
	}
	if a := cond.write(one, false); a != nil {
		return a
	}
	b.snapshots = slices.DeleteFunc(slices.Clone(b.snapshots), func(s *blobState) bool { return s == one })
	return deleted()
}
