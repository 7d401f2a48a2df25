package aztest

import (
	"net/http"
	"slices"
	"strconv"
)

func (s *Service) setMetadata(r *request, b *blobState) *answer {
	metadata, a := metadataOf(r)
	if a != nil {
		return a
	}
	if b.tier == archive { // ("Blob access tiers": only index tags can be set on the archive tier)
		return fail(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob.")
	}
	b.metadata = metadata
	s.touch(b)
	return ok(http.StatusOK).version(b.etag, b.lastModified)
}

// setProperties is Set Blob Properties: the HTTP headers, which are replaced as a whole, and the page blob's size and
// sequence number, which are kept unless given.
func (s *Service) setProperties(r *request, b *blobState) *answer {
	headers := headersOf(r)
	resizing := r.header.Get("X-Ms-Blob-Content-Length") != "" || r.header.Get("X-Ms-Sequence-Number-Action") != ""
	if resizing {
		if a := b.resize(r); a != nil {
			return a
		}
	}
	if len(headers) > 0 || !resizing {
		b.headers = headers
	}
	s.touch(b)
	a := ok(http.StatusOK).version(b.etag, b.lastModified)
	if b.kind == "PageBlob" {
		a.set("x-ms-blob-sequence-number", strconv.FormatInt(b.sequence, 10))
	}
	return a
}

func (s *Service) deleteBlob(r *request, b *blobState, c *containerState, cond conditions) *answer {
	if b == nil {
		if cond.match != "" {
			return conditionNotMet(http.StatusPreconditionFailed)
		}
		return noSuchBlob()
	}
	if r.query.Get("snapshot") != "" {
		return s.deleteSnapshot(r, b, cond)
	}
	if a := cond.write(b, false); a != nil {
		return a
	}
	if a := b.lease.check(r, "Blob", true); a != nil {
		return a
	}
	switch snapshots := r.header.Get("X-Ms-Delete-Snapshots"); {
	case snapshots != "" && snapshots != "only" && snapshots != "include":
		return invalidHeader("x-ms-delete-snapshots", snapshots)
	case len(b.snapshots) > 0 && snapshots == "":
		return fail(http.StatusConflict, "SnapshotsPresent", "This operation is not permitted because the blob has snapshots.")
	case snapshots == "only":
		b.snapshots = nil
		return deleted()
	}
	delete(c.blobs, r.blob)
	return deleted()
}

// deleted reports that nothing is kept: there is no soft delete here.
func deleted() *answer { return ok(http.StatusAccepted).set("x-ms-delete-type-permanent", "true") }

const archive = "Archive"

// setTier does not change the version. A blob leaves the archive tier at once here; the service takes hours.
func (b *blobState) setTier(r *request) *answer {
	tier := r.header.Get("X-Ms-Access-Tier")
	if b.kind != "BlockBlob" {
		return invalidBlobType()
	}
	if !slices.Contains([]string{"Hot", "Cool", "Cold", archive}, tier) {
		return invalidHeader("x-ms-access-tier", tier)
	}
	status := http.StatusOK
	if b.tier == archive && b.snapshot != "" { // only a blob comes back from the archive
		return fail(http.StatusConflict, "BlobOperationNotSupported", "Blob operation is not supported.")
	}
	if b.tier == archive && tier != archive {
		status = http.StatusAccepted
	}
	b.tier, b.tiered = tier, now()
	return ok(status)
}
