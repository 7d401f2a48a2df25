package aztest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
)

// copyState is the last copy onto a blob.
type copyState struct {
	id, source, status string
}

func (c *copyState) describe(a *answer) {
	if c != nil {
		a.set("x-ms-copy-id", c.id).set("x-ms-copy-status", c.status).set("x-ms-copy-source", c.source)
	}
}

// copyBlob copies within the account, at once. Conditions count on both sides; those on the source answer
// SourceConditionNotMet (REST: "Copy Blob"), where an emulator says ConditionNotMet or 304.
func (s *Service) copyBlob(r *request, c *containerState, old *blobState, cond conditions) *answer {
	source, bad := s.copySource(r)
	if bad != nil {
		return bad
	}
	sourceCond, bad := conditionsOf(r, "X-Ms-Source-")
	if bad != nil {
		return bad
	}
	if a := sourceCond.read(source); a != nil {
		if a.status == http.StatusBadRequest {
			return a
		}
		return fail(http.StatusPreconditionFailed, "SourceConditionNotMet", "The source condition specified using HTTP conditional header(s) is not met.")
	}
	if a := cond.write(old, true); a != nil {
		return a
	}
	if old != nil {
		if a := old.lease.check(r, "Blob", true); a != nil {
			return a
		}
		if old.copied != nil && old.copied.status == "pending" {
			return fail(http.StatusConflict, "PendingCopyOperation", "There is currently a pending copy operation.")
		}
	}
	b, a := s.fresh(r, old)
	if a != nil {
		return a
	}
	b.kind, b.content, b.blocks, b.ranges, b.sequence = source.kind, source.content, source.blocks, source.ranges, source.sequence
	b.headers = maps.Clone(source.headers)
	if len(b.metadata) == 0 {
		b.metadata = maps.Clone(source.metadata)
	}
	s.requests++
	b.copied = &copyState{id: fmt.Sprintf("%08x-0000-4000-8000-%012x", s.requests, s.etags), source: strings.SplitN(r.header.Get("X-Ms-Copy-Source"), "?", 2)[0], status: "success"}
	if s.copiesPend {
		b.copied.status = "pending"
	}
	a = s.store(r, c, b)
	a.status = http.StatusAccepted
	a.header.Del("Content-Md5")
	b.copied.describe(a)
	return a
}

func (s *Service) copySource(r *request) (*blobState, *answer) {
	from, err := url.Parse(r.header.Get("X-Ms-Copy-Source"))
	if err != nil {
		return nil, invalidHeader("x-ms-copy-source", "(unparsable)")
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(from.Path, "/"), "/")
	containerName, blobName, _ := strings.Cut(path, "/")
	c := s.containers[containerName]
	if c == nil || !c.deleted.IsZero() {
		return nil, fail(http.StatusNotFound, "CannotVerifyCopySource", "The specified container does not exist.")
	}
	b := c.blob(blobName)
	if b != nil && from.Query().Get("snapshot") != "" {
		b = b.at(from.Query().Get("snapshot"))
	}
	if b == nil {
		return nil, fail(http.StatusNotFound, "CannotVerifyCopySource", "The specified blob does not exist.")
	}
	return b, nil
}

// abortCopy ends a pending copy and leaves an empty blob (REST: "Abort Copy Blob").
func (s *Service) abortCopy(r *request, b *blobState) *answer {
	switch {
	case b.copied == nil || b.copied.status != "pending":
		return fail(http.StatusConflict, "NoPendingCopyOperation", "There is currently no pending copy operation.")
	case b.copied.id != r.query.Get("copyid"):
		return fail(http.StatusConflict, "CopyIdMismatch", "The specified copy ID did not match the copy ID for the pending copy operation.")
	}
	b.copied = &copyState{id: b.copied.id, source: b.copied.source, status: "aborted"}
	b.content, b.blocks = nil, nil
	s.touch(b)
	return ok(http.StatusNoContent)
}

// HoldCopies keeps copies that start from now on pending, so that they can be aborted; a false lets them finish at once
// again, which is the default.
func (s *Service) HoldCopies(pending bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copiesPend = pending
}
