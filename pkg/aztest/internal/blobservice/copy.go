package blobservice

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// copyState describes the last copy onto a blob.
type copyState struct {
	id, source, status string
	description        string // why it failed
	done               time.Time
	copied, total      int64
	at                 sourceAddress
	version            string // the source's when the copy started
}

// pending reports whether a copy onto b is pending. b may be nil.
func (b *blobState) pending() bool {
	return b != nil && b.copied != nil && b.copied.status == "pending"
}

func (c *copyState) describe(a *storage.Answer) {
	if c == nil {
		return
	}
	a.Set("x-ms-copy-id", c.id).Set("x-ms-copy-status", c.status).Set("x-ms-copy-source", c.source)
	a.Set("x-ms-copy-progress", c.progress()).Set("x-ms-copy-status-description", c.description)
	if !c.done.IsZero() {
		a.Set("x-ms-copy-completion-time", c.done.Format(http.TimeFormat))
	}
}

func (c *copyState) progress() string { return fmt.Sprintf("%d/%d", c.copied, c.total) }

// sourceAddress names a blob to copy from.
type sourceAddress struct{ container, blob, snapshot string }

// source finds the blob that a request copies from, and checks the conditions on it as met does.
func (s *Service) source(r *storage.Request, met func(conditions, *blobState) *storage.Answer) (*blobState, sourceAddress, *storage.Answer) {
	var at sourceAddress
	from, err := url.Parse(r.Header.Get("X-Ms-Copy-Source"))
	if err != nil {
		return nil, at, storage.InvalidHeader("x-ms-copy-source", "(unparsable)")
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(from.Path, "/"), "/")
	at.container, at.blob, _ = strings.Cut(path, "/")
	at.snapshot = from.Query().Get("snapshot")
	b := s.find(at)
	if b == nil && r.Query.Get("comp") == "" && r.Header.Get("X-Ms-Blob-Type") == "" && r.Header.Get("X-Ms-Requires-Sync") != "true" {
		return nil, at, noSuchBlob() // Copy Blob knows the account's own blobs; the others read the source as strangers do
	}
	if b == nil {
		return nil, at, storage.Fail(http.StatusNotFound, "CannotVerifyCopySource", "The specified blob does not exist.")
	}
	cond, bad := conditionsOf(r, ofSource)
	if bad != nil {
		return nil, at, bad
	}
	return b, at, met(cond, b)
}

// readable reports whether the request is authorized to read the source: unlike in Copy Blob, the credential of the
// request is valid for the destination only.
func (s *Service) readable(r *storage.Request, at sourceAddress) bool {
	from, err := url.Parse(r.Header.Get("X-Ms-Copy-Source"))
	return s.Anonymous || err == nil && from.Query().Get("sig") != "" ||
		r.Header.Get("X-Ms-Copy-Source-Authorization") != "" || s.Public(at.container) != ""
}

// find returns a blob by its address, or nil.
func (s *Service) find(at sourceAddress) *blobState {
	c := s.Alive(at.container)
	if c == nil {
		return nil
	}
	return c.version(at.blob, at.snapshot)
}

// fetchSource replaces the body of a request by the content of the blob that it names, or a range of it: for Put Block
// From URL and similar operations.
func (s *Service) fetchSource(r *storage.Request, met func(conditions, *blobState) *storage.Answer) *storage.Answer {
	if r.Header.Get("X-Ms-Copy-Source") == "" {
		return nil
	}
	b, at, bad := s.source(r, met)
	if bad != nil {
		return bad
	}
	if !s.readable(r, at) {
		return storage.Fail(http.StatusUnauthorized, "CannotVerifyCopySource", "Server failed to authenticate the request to the copy source.")
	}
	if b.tier == archive {
		return archived()
	}
	given := r.Header.Get("X-Ms-Source-Range")
	first, last, whole, bad := storage.Span(given, b.length())
	if bad == nil && whole && given != "" {
		bad = storage.InvalidRange(b.length())
	}
	if bad == nil {
		r.Body, bad = b.read(first, last)
	}
	if bad != nil {
		return bad
	}
	return checkSums(r.Body, "x-ms-source-content-md5", r.Header.Get("X-Ms-Source-Content-Md5"),
		"x-ms-source-content-crc64", r.Header.Get("X-Ms-Source-Content-Crc64"))
}

// putBlobFromURL is Put Blob with the content of another blob.
func (s *Service) putBlobFromURL(r *storage.Request, c *containerState, old *blobState, cond conditions) *storage.Answer {
	source, _, bad := s.source(r, conditions.put)
	if bad != nil {
		return bad
	}
	if bad := s.fetchSource(r, conditions.put); bad != nil {
		return bad
	}
	if r.Header.Get("X-Ms-Blob-Type") != "BlockBlob" {
		return storage.InvalidHeader("x-ms-blob-type", r.Header.Get("X-Ms-Blob-Type"))
	}
	if r.Header.Get("X-Ms-Copy-Source-Blob-Properties") != "false" {
		for from, to := range contentHeaders {
			r.Header.Set(from, cmp.Or(r.Header.Get(from), source.headers[to]))
		}
	}
	return s.putBlob(r, c, old, cond)
}

// copyBlob copies within the account. The copy is complete at once, unless HoldCopies is on.
func (s *Service) copyBlob(r *storage.Request, c *containerState, old *blobState, cond conditions) *storage.Answer {
	source, at, bad := s.source(r, conditions.source)
	if bad != nil {
		return bad
	}
	atOnce := r.Header.Get("X-Ms-Requires-Sync") == "true" // Copy Blob From URL
	if a := admitNew(r, c, old, cond); a != nil {
		if atOnce {
			return a
		}
		return onTarget(a)
	}
	switch {
	case old != nil && old.kind != source.kind:
		return invalidBlobType()
	case old != nil && old.Lease.State() == storage.LeaseLeased && old.Lease.Duration >= 0 && !atOnce:
		// The lease must last as long as the copy (REST: "Copy Blob"). An emulator accepts any lease.
		return storage.Fail(http.StatusPreconditionFailed, "InfiniteLeaseDurationRequired", "The lease ID matched, but the specified lease must be an infinite-duration lease.")
	case source.tier == archive && r.Header.Get("X-Ms-Access-Tier") == "", old != nil && old.tier == archive:
		return archived()
	}
	if sum := r.Header.Get("X-Ms-Source-Content-Md5"); sum != "" {
		content, bad := source.read(0, source.length()-1)
		if bad = cmp.Or(bad, checkSums(content, "x-ms-source-content-md5", sum, "", "")); bad != nil {
			return bad
		}
	}
	b, a := s.fresh(r, c, old)
	if a != nil {
		return a
	}
	if r.Header.Get("X-Ms-Copy-Source-Tag-Option") == "COPY" {
		b.tags = source.tags
	}
	if len(b.metadata) == 0 {
		b.metadata = source.metadata
	}
	b.sealed = source.sealed && r.Header.Get("X-Ms-Seal-Blob") != "false" || r.Header.Get("X-Ms-Seal-Blob") == "true" && source.kind == "AppendBlob"
	s.copies++
	b.kind, b.headers = source.kind, maps.Clone(source.headers)
	b.Pages.Size, b.sequence = source.Pages.Size, source.sequence
	b.copied = &copyState{
		id: fmt.Sprintf("%08x-0000-4000-8000-%012x", s.copies, s.Etags), status: "pending", at: at, version: source.ETag, total: source.length(),
		source: strings.SplitN(r.Header.Get("X-Ms-Copy-Source"), "?", 2)[0], // it may have a signature
	}
	if atOnce || !s.copiesPend {
		b.take(source)
	}
	a = s.store(r, c, b)
	a.Status = http.StatusAccepted
	a.Header.Del("Content-Md5")
	return a.Set("x-ms-copy-id", b.copied.id).Set("x-ms-copy-status", b.copied.status)
}

// onTarget replaces the code of a failed condition by the one with which Copy Blob distinguishes the destination from
// the source.
func onTarget(a *storage.Answer) *storage.Answer {
	if a.Header.Get("x-ms-error-code") != "ConditionNotMet" {
		return a
	}
	return storage.Fail(a.Status, "TargetConditionNotMet", "The target condition specified using HTTP conditional header(s) is not met.")
}

// take makes the source's content that of b and ends the copy. Content is shared and clipped, so that neither blob
// grows into the other.
func (b *blobState) take(source *blobState) {
	b.content, b.blocks, b.blockCount = slices.Clip(source.content), source.blocks, source.blockCount
	b.Pages = source.Pages.Clone()
	b.copied.status, b.copied.copied, b.copied.done = "success", source.length(), storage.Now()
}

// abortCopy ends a pending copy and leaves an empty blob with full metadata (REST: "Abort Copy Blob").
func (s *Service) abortCopy(r *storage.Request, b *blobState) *storage.Answer {
	switch {
	case r.Header.Get("X-Ms-Copy-Action") != "abort":
		return storage.InvalidHeader("x-ms-copy-action", r.Header.Get("X-Ms-Copy-Action"))
	case !b.pending():
		return storage.Fail(http.StatusConflict, "NoPendingCopyOperation", "There is currently no pending copy operation.")
	case b.copied.id != r.Query.Get("copyid"):
		return storage.Fail(http.StatusConflict, "CopyIdMismatch", "The specified copy ID did not match the copy ID for the pending copy operation.")
	}
	s.endCopy(b, "aborted", "")
	return storage.OK(http.StatusNoContent)
}

// endCopy ends a copy that did not succeed.
func (s *Service) endCopy(b *blobState, status, description string) {
	b.copied.status, b.copied.description, b.copied.done = status, description, storage.Now()
	b.Pages = storage.Pages{}
	s.Touch(&b.Versioned)
}

func (s *Service) finishCopy(b *blobState) {
	source := s.find(b.copied.at)
	switch {
	case source == nil:
		s.endCopy(b, "failed", `404 BlobNotFound "Copy failed when reading the source."`)
	case source.ETag != b.copied.version:
		s.endCopy(b, "failed", `412 ConditionNotMet "Copy failed when reading the source."`)
	default:
		b.take(source)
		s.Touch(&b.Versioned) // the version changes when a copy starts and when it finishes
	}
}

// HoldCopies implements aztest.Service.HoldCopies.
func (s *Service) HoldCopies(pending bool) {
	s.copiesPend = pending
	if pending {
		return
	}
	for _, container := range s.Names("") {
		blobs := s.Find(container).blobs
		for _, name := range slices.Sorted(maps.Keys(blobs)) {
			if b := blobs[name]; b.pending() {
				s.finishCopy(b)
			}
		}
	}
}
