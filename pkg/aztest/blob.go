package aztest

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// routeBlobIn carries out an operation on a blob.
func (s *Service) routeBlobIn(r *request, c *containerState) *answer {
	cond, bad := conditionsOf(r, "")
	if bad != nil {
		return bad
	}
	comp := r.query.Get("comp")
	b := c.blob(r.blob)
	if r.method == http.MethodGet || r.method == http.MethodHead {
		return s.readBlob(r, c, cond, comp)
	}
	switch comp {
	case "":
		switch {
		case r.method == http.MethodDelete:
			return s.deleteBlob(r, c, b, cond)
		case r.header.Get("X-Ms-Copy-Source") != "":
			return s.copyBlob(r, c, b, cond)
		default:
			return s.putBlob(r, c, b, cond)
		}
	case "block":
		return s.putBlock(r, c)
	case "blocklist":
		return s.putBlockList(r, c, cond)
	}
	if b == nil {
		// A condition on a version that is not there is not met; without one the blob is not found.
		if cond.match != "" && comp != "tags" && comp != "tier" && comp != "appendblock" && comp != "page" {
			return conditionNotMet(http.StatusPreconditionFailed)
		}
		return noSuchBlob()
	}
	if comp == "tags" || comp == "tier" {
		// Neither is part of the version, and neither takes conditions on it: only on tags.
		cond = conditions{tags: cond.tags}
	}
	if a := cond.write(b, false); a != nil {
		return a
	}
	if comp == "lease" {
		return b.lease.operate(r).version(b.etag, b.lastModified)
	}
	if comp == "snapshot" {
		return s.snapshot(r, b)
	}
	if a := b.lease.check(r, "Blob", true); a != nil {
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
		b.tier = r.header.Get("X-Ms-Access-Tier") // not part of the version either
		return ok(http.StatusOK)
	case "copy":
		return s.abortCopy(r, b)
	case "appendblock":
		return s.appendBlock(r, b)
	case "seal":
		return s.sealAppend(r, b)
	case "page":
		return s.putPage(r, b)
	}
	return notImplemented()
}

func (s *Service) readBlob(r *request, c *containerState, cond conditions, comp string) *answer {
	b := c.blob(r.blob)
	if comp == "blocklist" {
		return s.getBlockList(r, c, cond)
	}
	if b != nil && r.query.Get("snapshot") != "" {
		b = b.at(r.query.Get("snapshot"))
	}
	if b == nil {
		if cond.match != "" && comp != "tags" {
			return conditionNotMet(http.StatusPreconditionFailed)
		}
		return noSuchBlob()
	}
	if comp == "tags" {
		cond = conditions{tags: cond.tags}
	}
	if a := cond.read(b); a != nil {
		return a.version(b.etag, b.lastModified)
	}
	if a := b.lease.check(r, "Blob", false); a != nil {
		return a
	}
	switch {
	case comp == "tags":
		return s.getTags(b)
	case comp == "pagelist":
		return b.pageList(r)
	case comp == "metadata":
		a := ok(http.StatusOK).version(b.etag, b.lastModified)
		for name, value := range b.metadata {
			a.set("x-ms-meta-"+name, value)
		}
		return a
	case comp != "":
		return notImplemented()
	case r.method == http.MethodHead:
		a := ok(http.StatusOK).properties(b, true)
		a.size = int64(len(b.content))
		return a
	}
	return getBlob(r, b)
}

func getBlob(r *request, b *blobState) *answer {
	header := r.header.Get("X-Ms-Range")
	if header == "" {
		header = r.header.Get("Range")
	}
	a := ok(http.StatusOK).properties(b, false)
	a.body = b.content
	if header == "" {
		return a
	}
	first, last, err := byteRange(header, int64(len(b.content)))
	if err != nil {
		return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The range specified is invalid for the current size of the resource.").
			set("Content-Range", fmt.Sprintf("bytes */%d", len(b.content)))
	}
	a.status = http.StatusPartialContent
	a.set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(b.content)))
	if md5 := a.header.Get("Content-Md5"); md5 != "" {
		a.set("x-ms-blob-content-md5", md5)
		a.header.Del("Content-Md5")
	}
	a.body = b.content[first : last+1]
	return a
}

// byteRange reads "bytes=first-last" or "bytes=first-" against a size.
func byteRange(header string, size int64) (first, last int64, err error) {
	from, to, ok := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	if first, err = strconv.ParseInt(from, 10, 64); err != nil || !ok {
		return 0, 0, fmt.Errorf("malformed range %q", header)
	}
	last = size - 1
	if to != "" {
		if last, err = strconv.ParseInt(to, 10, 64); err != nil {
			return 0, 0, fmt.Errorf("malformed range %q", header)
		}
		last = min(last, size-1)
	}
	if first >= size || last < first {
		return 0, 0, fmt.Errorf("range %q is beyond %d bytes", header, size)
	}
	return first, last, nil
}

// putBlob creates or overwrites a blob of any type.
func (s *Service) putBlob(r *request, c *containerState, old *blobState, cond conditions) *answer {
	if a := cond.write(old, true); a != nil {
		return a
	}
	if old != nil {
		if a := old.lease.check(r, "Blob", true); a != nil {
			return a
		}
	} else if a := (&lease{}).check(r, "Blob", true); a != nil {
		return a
	}
	b, a := s.fresh(r, old)
	if a != nil {
		return a
	}
	switch b.kind = r.header.Get("X-Ms-Blob-Type"); b.kind {
	case "BlockBlob":
		if sum := r.header.Get("Content-Md5"); sum != "" && sum != contentMD5(r.body) {
			return fail(http.StatusBadRequest, "Md5Mismatch", "The MD5 value specified in the request did not match with the MD5 value calculated by the server.")
		}
		b.content = r.body
		if b.headers["Content-Md5"] == "" {
			b.headers["Content-Md5"] = contentMD5(r.body)
		}
	case "AppendBlob":
	case "PageBlob":
		if a := b.initPages(r); a != nil {
			return a
		}
	default:
		return invalidHeader("x-ms-blob-type", b.kind)
	}
	return s.store(r, c, b)
}

// fresh makes the blob that overwrites old: content, metadata, headers and tags are the request's; the tier is inherited
// unless the request sets one ("Hot, cool and archive access tiers": a blob that is overwritten hands its tier on), and
// so are the lease, the snapshots and the time of creation.
func (s *Service) fresh(r *request, old *blobState) (*blobState, *answer) {
	metadata, a := metadataOf(r)
	if a != nil {
		return nil, a
	}
	tags, a := headerTags(r)
	if a != nil {
		return nil, a
	}
	b := &blobState{
		committed: true, created: now(), metadata: metadata, tags: tags, headers: headersOf(r), tier: r.header.Get("X-Ms-Access-Tier"),
	}
	if b.headers["Content-Type"] == "" {
		b.headers["Content-Type"] = "application/octet-stream"
	}
	if old != nil {
		b.lease, b.snapshots, b.created = old.lease, old.snapshots, old.created
		if b.tier == "" {
			b.tier = old.tier
		}
	}
	return b, nil
}

func (s *Service) store(r *request, c *containerState, b *blobState) *answer {
	s.touch(b)
	c.blobs[r.blob] = b
	a := ok(http.StatusCreated).version(b.etag, b.lastModified).set("x-ms-request-server-encrypted", "true")
	return a.set("Content-MD5", b.headers["Content-Md5"])
}

func contentMD5(data []byte) string {
	sum := md5.Sum(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (s *Service) setMetadata(r *request, b *blobState) *answer {
	metadata, a := metadataOf(r)
	if a != nil {
		return a
	}
	b.metadata = metadata
	s.touch(b)
	return ok(http.StatusOK).version(b.etag, b.lastModified)
}

// setProperties is Set Blob Properties: the HTTP headers, which are replaced whole, and the page blob's size and
// sequence number, which stay unless given.
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

func (s *Service) deleteBlob(r *request, c *containerState, b *blobState, cond conditions) *answer {
	if b == nil {
		if cond.match != "" {
			return conditionNotMet(http.StatusPreconditionFailed)
		}
		return noSuchBlob()
	}
	if at := r.query.Get("snapshot"); at != "" {
		if b.at(at) == nil {
			return noSuchBlob()
		}
		b.dropSnapshot(at)
		return ok(http.StatusAccepted)
	}
	if a := cond.write(b, false); a != nil {
		return a
	}
	if a := b.lease.check(r, "Blob", true); a != nil {
		return a
	}
	switch snapshots := r.header.Get("X-Ms-Delete-Snapshots"); {
	case len(b.snapshots) > 0 && snapshots == "":
		return fail(http.StatusConflict, "SnapshotsPresent", "This operation is not permitted because the blob has snapshots.")
	case snapshots == "only":
		b.snapshots = nil
		return ok(http.StatusAccepted)
	}
	delete(c.blobs, r.blob)
	return ok(http.StatusAccepted)
}

// at returns the snapshot of that time, or nil.
func (b *blobState) at(snapshot string) *blobState {
	for _, s := range b.snapshots {
		if s.snapshot == snapshot {
			return s
		}
	}
	return nil
}

func (b *blobState) dropSnapshot(at string) {
	kept := make([]*blobState, 0, len(b.snapshots))
	for _, s := range b.snapshots {
		if s.snapshot != at {
			kept = append(kept, s)
		}
	}
	b.snapshots = kept
}

// snapshot does not change the blob's version, and needs no lease id: it only reads.
func (s *Service) snapshot(r *request, b *blobState) *answer {
	if a := b.lease.check(r, "Blob", false); a != nil {
		return a
	}
	metadata, a := metadataOf(r)
	if a != nil {
		return a
	}
	copied := *b
	copied.lease, copied.snapshots, copied.staged = lease{}, nil, nil
	if len(metadata) > 0 {
		copied.metadata = metadata
	}
	at := time.Now().UTC()
	for {
		copied.snapshot = at.Format("2006-01-02T15:04:05.0000000Z")
		if b.at(copied.snapshot) == nil {
			break
		}
		at = at.Add(100 * time.Nanosecond) // the service's resolution
	}
	b.snapshots = append(b.snapshots, &copied)
	return ok(http.StatusCreated).version(b.etag, b.lastModified).set("x-ms-snapshot", copied.snapshot)
}

func joinBlocks(blocks []block) []byte {
	var content bytes.Buffer
	for _, b := range blocks {
		content.Write(b.data)
	}
	return content.Bytes()
}
