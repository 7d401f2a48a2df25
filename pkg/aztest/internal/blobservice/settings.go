package blobservice

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

func (s *Service) setMetadata(r *storage.Request, b *blobState) *storage.Answer {
	metadata, a := storage.MetadataOf(r)
	if a != nil {
		return a
	}
	if b.tier == archive { // ("Blob access tiers": only index tags can be set on the archive tier)
		return archived()
	}
	b.metadata = metadata
	s.Touch(&b.Versioned)
	return storage.OK(http.StatusOK).Version(&b.Versioned)
}

// setProperties is Set Blob Properties: the HTTP headers, which are replaced as a whole, and the page blob's size and
// sequence number, which are kept unless given.
func (s *Service) setProperties(r *storage.Request, b *blobState) *storage.Answer {
	headers := headersOf(r)
	resizing := r.Header.Get("X-Ms-Blob-Content-Length") != "" || r.Header.Get("X-Ms-Sequence-Number-Action") != ""
	if resizing {
		if a := b.resize(r); a != nil {
			return a
		}
	}
	if len(headers) > 0 || !resizing {
		b.headers = headers
	}
	s.Touch(&b.Versioned)
	a := storage.OK(http.StatusOK).Version(&b.Versioned)
	if b.kind == "PageBlob" {
		a.Set("x-ms-blob-sequence-number", strconv.FormatInt(b.sequence, 10))
	}
	return a
}

func (s *Service) deleteBlob(r *storage.Request, b *blobState, c *containerState, cond conditions) *storage.Answer {
	if b == nil {
		if cond.match != "" {
			return conditionNotMet(http.StatusPreconditionFailed)
		}
		return noSuchBlob()
	}
	if r.Query.Get("snapshot") != "" {
		return s.deleteSnapshot(r, b, cond)
	}
	if a := cond.write(b, false); a != nil {
		return a
	}
	if a := b.Lease.Check(r, "Blob", true); a != nil {
		return a
	}
	switch snapshots := r.Header.Get("X-Ms-Delete-Snapshots"); {
	case snapshots != "" && snapshots != "only" && snapshots != "include":
		return storage.InvalidHeader("x-ms-delete-snapshots", snapshots)
	case len(b.snapshots) > 0 && snapshots == "":
		return storage.Fail(http.StatusConflict, "SnapshotsPresent", "This operation is not permitted because the blob has snapshots.")
	case snapshots == "only":
		b.snapshots = nil
		return deleted()
	}
	delete(c.blobs, r.Blob)
	return deleted()
}

// deleted reports that nothing is kept: there is no soft delete here.
func deleted() *storage.Answer {
	return storage.OK(http.StatusAccepted).Set("x-ms-delete-type-permanent", "true")
}

const archive = "Archive"

func archived() *storage.Answer {
	return storage.Fail(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob.")
}

// setTier does not change the version. A blob leaves the archive tier at once here; the service takes hours.
func (b *blobState) setTier(r *storage.Request) *storage.Answer {
	tier := r.Header.Get("X-Ms-Access-Tier")
	if b.kind != "BlockBlob" {
		return invalidBlobType()
	}
	if !slices.Contains([]string{"Hot", "Cool", "Cold", archive}, tier) {
		return storage.InvalidHeader("x-ms-access-tier", tier)
	}
	status := http.StatusOK
	if b.tier == archive && b.snapshot != "" { // only a blob comes back from the archive
		return storage.Fail(http.StatusConflict, "BlobOperationNotSupported", "Blob operation is not supported.")
	}
	if b.tier == archive && tier != archive {
		status = http.StatusAccepted
	}
	b.tier, b.tiered = tier, storage.Now()
	return storage.OK(status)
}
