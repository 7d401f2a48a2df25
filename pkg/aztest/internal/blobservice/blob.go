package blobservice

import (
	"net/http"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// routeBlobIn carries out an operation on a blob.
func (s *Service) routeBlobIn(r *storage.Request, c *containerState) *storage.Answer {
	comp, prefix := r.Query.Get("comp"), ""
	if comp == "tags" { // they are not part of the version: conditions on it have headers of their own, since version 2026-02-06
		prefix = "X-Ms-Blob-"
	}
	cond, bad := conditionsOf(r, prefix)
	if bad != nil {
		return bad
	}
	if r.Reads() {
		return s.readBlob(r, c, cond, comp)
	}
	if a := checkBody(r); a != nil {
		return a
	}
	// While a copy is pending, its destination cannot be changed (REST: "Copy Blob": any attempt to modify, snapshot or
	// lease it fails with 409). Index tags can.
	if c.blobs[r.Blob].pending() && comp != "copy" && comp != "tags" {
		return storage.Fail(http.StatusConflict, "PendingCopyOperation", "There is currently a pending copy operation.")
	}
	if r.Method == http.MethodDelete {
		return s.deleteBlob(r, c.blob(r.Blob), c, cond)
	}
	if comp == "" && r.Blob == "" {
		return storage.Fail(http.StatusBadRequest, "InvalidUri", "The requested URI does not represent any resource on the server.")
	}
	if comp == "" {
		return s.createBlob(r, c, cond)
	}
	if comp == "block" || comp == "appendblock" || comp == "page" {
		met := conditions.fetch
		if comp == "block" {
			met = conditions.block
		}
		if a := s.fetchSource(r, met); a != nil {
			return a
		}
	}
	switch comp {
	case "block":
		return s.putBlock(r, c)
	case "blocklist":
		return s.putBlockList(r, c, cond)
	}
	return s.changeBlob(r, c, cond, comp)
}

// createBlob routes the operations that make a whole blob.
func (s *Service) createBlob(r *storage.Request, c *containerState, cond conditions) *storage.Answer {
	switch {
	case r.Header.Get("X-Ms-Copy-Source") == "":
		return s.putBlob(r, c, c.blob(r.Blob), cond)
	case r.Header.Get("X-Ms-Blob-Type") != "":
		return s.putBlobFromURL(r, c, c.blob(r.Blob), cond)
	default:
		return s.copyBlob(r, c, c.blob(r.Blob), cond)
	}
}

// changeBlob carries out operations that need an existing blob.
func (s *Service) changeBlob(r *storage.Request, c *containerState, cond conditions, comp string) *storage.Answer {
	b := c.blob(r.Blob)
	if held := c.blobs[r.Blob]; b == nil && held != nil && comp == "lease" && r.Query.Get("snapshot") == "" {
		// Staged blocks are not a blob, but their name can be leased, even before the first commit.
		if a := cond.write(nil, false); a != nil {
			return a
		}
		a := held.Lease.Operate(r)
		if a.Failed() {
			return a
		}
		return a.Version(&uncommitted)
	}
	if b != nil && r.Query.Get("snapshot") != "" {
		// Snapshots are read-only, and cannot be leased (REST: "Lease Blob"). Their tier and tags can be set.
		if comp != "tier" && comp != "tags" {
			return storage.Fail(http.StatusBadRequest, "InvalidQueryParameterValue", "Value for one of the query parameters specified in the request URI is invalid: a snapshot cannot be changed.")
		}
		b = b.at(r.Query.Get("snapshot"))
	}
	if comp == "copy" && !storage.LeaseID.MatchString(strings.ToLower(r.Query.Get("copyid"))) {
		return storage.InvalidQuery()
	}
	if b == nil {
		// If there is no blob, a condition on a version fails; without one the response is 404.
		if cond.match != "" && comp != "tags" && comp != "tier" && comp != "appendblock" && comp != "page" && comp != "copy" {
			return conditionNotMet(http.StatusPreconditionFailed)
		}
		return noSuchBlob()
	}
	switch comp {
	case "tier":
		cond = conditions{tags: cond.tags} // it is no part of the version (REST: "Set Blob Tier")
	case "copy":
		cond = conditions{} // REST: "Abort Copy Blob" knows none
	}
	if a := cond.write(b, false); a != nil {
		if comp == "page" && r.Header.Get("X-Ms-Copy-Source") != "" && !wellFormed(cond.match) {
			return onTarget(a)
		}
		return a
	}
	if comp == "lease" {
		return b.Lease.Operate(r).Version(&b.Versioned)
	}
	if comp == "snapshot" {
		return s.snapshot(r, b)
	}
	if a := b.Lease.Check(r, "Blob", true); a != nil {
		return a
	}
	switch comp {
	case "metadata":
		return s.setMetadata(r, b)
	case "properties":
		return s.setProperties(r, b)
	case "tags":
		return s.setTags(r, b)
	case "tier":
		return b.setTier(r)
	case "copy":
		return s.abortCopy(r, b)
	case "appendblock":
		return s.appendBlock(r, b)
	case "seal":
		return s.sealAppend(r, b)
	case "page":
		return s.putPage(r, b)
	}
	return storage.OK(http.StatusOK) // Undelete Blob: nothing is soft-deleted here
}

func (s *Service) readBlob(r *storage.Request, c *containerState, cond conditions, comp string) *storage.Answer {
	if a := snapshotsNamed(r); a != nil {
		return a
	}
	if comp == "blocklist" {
		return s.getBlockList(r, c, cond)
	}
	b := c.version(r.Blob, r.Query.Get("snapshot"))
	if b == nil {
		return noSuchBlob() // whatever the condition; an emulator sends 412 for If-Match
	}
	if a := cond.read(b); a != nil {
		return a.Version(&b.Versioned)
	}
	if a := b.Lease.Check(r, "Blob", false); a != nil {
		return a
	}
	switch {
	case comp == "tags":
		return s.getTags(b)
	case comp == "pagelist":
		var previous *blobState
		if at := r.Query.Get("prevsnapshot"); at != "" {
			if previous = c.version(r.Blob, at); previous == nil {
				return storage.Fail(http.StatusConflict, "PreviousSnapshotNotFound", "The previous snapshot is not found.")
			}
		}
		return b.pageList(r, previous)
	case comp == "metadata":
		return storage.OK(http.StatusOK).Version(&b.Versioned).Describing(b.metadata)
	case r.Method == http.MethodHead:
		a := describeBlob(storage.OK(http.StatusOK), b, r.Header.Get("X-Ms-Version"), true)
		a.Size = b.length()
		return a
	}
	return getBlob(r, b)
}
