package aztest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/pages"
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

func (c *copyState) describe(a *answer) {
	if c == nil {
		return
	}
	a.set("x-ms-copy-id", c.id).set("x-ms-copy-status", c.status).set("x-ms-copy-source", c.source)
	a.set("x-ms-copy-progress", c.progress()).set("x-ms-copy-status-description", c.description)
	if !c.done.IsZero() {
		a.set("x-ms-copy-completion-time", c.done.Format(http.TimeFormat))
	}
}

func (c *copyState) progress() string { return fmt.Sprintf("%d/%d", c.copied, c.total) }

// sourceAddress names a blob to copy from.
type sourceAddress struct{ container, blob, snapshot string }

// source finds the blob that a request copies from, and checks the conditions on it as met does.
func (s *Service) source(r *request, met func(conditions, *blobState) *answer) (*blobState, sourceAddress, *answer) {
	var at sourceAddress
	from, err := url.Parse(r.header.Get("X-Ms-Copy-Source"))
	if err != nil {
		return nil, at, invalidHeader("x-ms-copy-source", "(unparsable)")
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(from.Path, "/"), "/")
	at.container, at.blob, _ = strings.Cut(path, "/")
	at.snapshot = from.Query().Get("snapshot")
	b := s.find(at)
	if b == nil && r.query.Get("comp") == "" && r.header.Get("X-Ms-Blob-Type") == "" && r.header.Get("X-Ms-Requires-Sync") != "true" {
		return nil, at, noSuchBlob() // Copy Blob knows the account's own blobs; the others read the source as strangers do
	}
	if b == nil {
		return nil, at, fail(http.StatusNotFound, "CannotVerifyCopySource", "The specified blob does not exist.")
	}
	cond, bad := conditionsOf(r, "X-Ms-Source-")
	if bad != nil {
		return nil, at, bad
	}
	return b, at, met(cond, b)
}

// readable reports whether the request is authorized to read the source: unlike in Copy Blob, the credential of the
// request is valid for the destination only.
func (s *Service) readable(r *request, at sourceAddress) bool {
	from, err := url.Parse(r.header.Get("X-Ms-Copy-Source"))
	return s.o.Anonymous || err == nil && from.Query().Get("sig") != "" ||
		r.header.Get("X-Ms-Copy-Source-Authorization") != "" || s.containers[at.container].access != ""
}

// find returns a blob by its address, or nil.
func (s *Service) find(at sourceAddress) *blobState {
	c := s.containers[at.container]
	if c == nil || !c.deleted.IsZero() {
		return nil
	}
	b := c.blob(at.blob)
	if b != nil && at.snapshot != "" {
		b = b.at(at.snapshot)
	}
	return b
}

// fetchSource replaces the body of a request by the content of the blob that it names, or a range of it: for Put Block
// From URL and similar operations.
func (s *Service) fetchSource(r *request, met func(conditions, *blobState) *answer) *answer {
	if r.header.Get("X-Ms-Copy-Source") == "" {
		return nil
	}
	b, at, bad := s.source(r, met)
	if bad != nil {
		return bad
	}
	if !s.readable(r, at) {
		return fail(http.StatusUnauthorized, "CannotVerifyCopySource", "Server failed to authenticate the request to the copy source.")
	}
	if b.tier == archive {
		return fail(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob.")
	}
	first, last := int64(0), b.length()-1
	if given := r.header.Get("X-Ms-Source-Range"); given != "" {
		var err error
		if first, last, err = parseRange(given); err != nil || first >= b.length() {
			return invalidRange(b.length())
		}
		if last < 0 || last >= b.length() {
			last = b.length() - 1
		}
	}
	r.body = b.read(first, last)
	return checkSums(r.body, "x-ms-source-content-md5", r.header.Get("X-Ms-Source-Content-Md5"),
		"x-ms-source-content-crc64", r.header.Get("X-Ms-Source-Content-Crc64"))
}

// putBlobFromURL is Put Blob with the content of another blob.
func (s *Service) putBlobFromURL(r *request, c *containerState, old *blobState, cond conditions) *answer {
	source, _, bad := s.source(r, conditions.put)
	if bad != nil {
		return bad
	}
	if bad := s.fetchSource(r, conditions.put); bad != nil {
		return bad
	}
	if r.header.Get("X-Ms-Blob-Type") != "BlockBlob" {
		return invalidHeader("x-ms-blob-type", r.header.Get("X-Ms-Blob-Type"))
	}
	if r.header.Get("X-Ms-Copy-Source-Blob-Properties") != "false" {
		for from, to := range contentHeaders {
			r.header.Set(from, cmp.Or(r.header.Get(from), source.headers[to]))
		}
	}
	return s.putBlob(r, c, old, cond)
}

// copyBlob copies within the account. The copy is complete at once, unless HoldCopies is on.
func (s *Service) copyBlob(r *request, c *containerState, old *blobState, cond conditions) *answer {
	source, at, bad := s.source(r, conditions.source)
	if bad != nil {
		return bad
	}
	atOnce := r.header.Get("X-Ms-Requires-Sync") == "true" // Copy Blob From URL
	if a := admitNew(r, c, old, cond); a != nil {
		if atOnce {
			return a
		}
		return a.onTarget()
	}
	switch {
	case old != nil && old.kind != source.kind:
		return invalidBlobType()
	case old != nil && old.lease.state() == leaseLeased && old.lease.duration >= 0 && !atOnce:
		// The lease must last as long as the copy (REST: "Copy Blob"). An emulator accepts any lease.
		return fail(http.StatusPreconditionFailed, "InfiniteLeaseDurationRequired", "The lease ID matched, but the specified lease must be an infinite-duration lease.")
	case source.tier == archive && r.header.Get("X-Ms-Access-Tier") == "", old != nil && old.tier == archive:
		return fail(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob.")
	}
	if a := checkSums(source.read(0, source.length()-1), "x-ms-source-content-md5", r.header.Get("X-Ms-Source-Content-Md5"), "", ""); a != nil {
		return a
	}
	b, a := s.fresh(r, c, old)
	if a != nil {
		return a
	}
	if r.header.Get("X-Ms-Copy-Source-Tag-Option") == "COPY" {
		b.tags = source.tags
	}
	if len(b.metadata) == 0 {
		b.metadata = source.metadata
	}
	b.sealed = source.sealed && r.header.Get("X-Ms-Seal-Blob") != "false" || r.header.Get("X-Ms-Seal-Blob") == "true" && source.kind == "AppendBlob"
	s.copies++
	b.kind, b.headers = source.kind, maps.Clone(source.headers)
	b.Pages.Size, b.sequence = source.Pages.Size, source.sequence
	b.copied = &copyState{
		id: fmt.Sprintf("%08x-0000-4000-8000-%012x", s.copies, s.etags), status: "pending", at: at, version: source.etag, total: source.length(),
		source: strings.SplitN(r.header.Get("X-Ms-Copy-Source"), "?", 2)[0], // it may have a signature
	}
	if atOnce || !s.copiesPend {
		b.take(source)
	}
	a = s.store(r, c, b)
	a.status = http.StatusAccepted
	a.header.Del("Content-Md5")
	return a.set("x-ms-copy-id", b.copied.id).set("x-ms-copy-status", b.copied.status)
}

// onTarget replaces the code of a failed condition by the one with which Copy Blob distinguishes the destination from
// the source.
func (a *answer) onTarget() *answer {
	if a.header.Get("x-ms-error-code") != "ConditionNotMet" {
		return a
	}
	return fail(a.status, "TargetConditionNotMet", "The target condition specified using HTTP conditional header(s) is not met.")
}

// take makes the source's content that of b and ends the copy. Content is shared and clipped, so that neither blob
// grows into the other.
func (b *blobState) take(source *blobState) {
	b.content, b.blocks, b.blockCount = slices.Clip(source.content), source.blocks, source.blockCount
	b.Pages = source.Pages.Clone()
	b.copied.status, b.copied.copied, b.copied.done = "success", source.length(), now()
}

// abortCopy ends a pending copy and leaves an empty blob with full metadata (REST: "Abort Copy Blob").
func (s *Service) abortCopy(r *request, b *blobState) *answer {
	switch {
	case r.header.Get("X-Ms-Copy-Action") != "abort":
		return invalidHeader("x-ms-copy-action", r.header.Get("X-Ms-Copy-Action"))
	case !b.pending():
		return fail(http.StatusConflict, "NoPendingCopyOperation", "There is currently no pending copy operation.")
	case b.copied.id != r.query.Get("copyid"):
		return fail(http.StatusConflict, "CopyIdMismatch", "The specified copy ID did not match the copy ID for the pending copy operation.")
	}
	s.endCopy(b, "aborted", "")
	return ok(http.StatusNoContent)
}

// endCopy ends a copy that did not succeed.
func (s *Service) endCopy(b *blobState, status, description string) {
	b.copied.status, b.copied.description, b.copied.done = status, description, now()
	b.Pages = pages.Pages{}
	s.touch(b)
}

// HoldCopies(true) keeps the copies that start from now on pending, as the service does with large copies and with
// those from other accounts: their destination is empty and refuses every change until the copy is aborted.
// HoldCopies(false), the default, completes copies at once, and completes those that are pending: with status success,
// or failed if their source has changed since.
func (s *Service) HoldCopies(pending bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copiesPend = pending
	if pending {
		return
	}
	for _, container := range slices.Sorted(maps.Keys(s.containers)) {
		blobs := s.containers[container].blobs
		for _, name := range slices.Sorted(maps.Keys(blobs)) {
			if b := blobs[name]; b.pending() {
				s.finishCopy(b)
			}
		}
	}
}

func (s *Service) finishCopy(b *blobState) {
	source := s.find(b.copied.at)
	switch {
	case source == nil:
		s.endCopy(b, "failed", `404 BlobNotFound "Copy failed when reading the source."`)
	case source.etag != b.copied.version:
		s.endCopy(b, "failed", `412 ConditionNotMet "Copy failed when reading the source."`)
	default:
		b.take(source)
		s.touch(b) // the version changes when a copy starts and when it finishes
	}
}
