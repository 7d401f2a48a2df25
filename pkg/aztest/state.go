package aztest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/pages"
)

// containerState is a container as the service keeps it.
type containerState struct {
	name         string
	etag         string
	lastModified time.Time
	metadata     map[string]string
	access       string // x-ms-blob-public-access
	acl          []byte
	lease        lease
	blobs        map[string]*blobState
	deleted      time.Time // when it was deleted; zero while it lives
}

// blobState is a blob as the service keeps it. Content is never changed in place, because readers keep it and copies
// share it; an append blob grows behind the end that readers know.
type blobState struct {
	kind         string // BlockBlob, AppendBlob, PageBlob
	content      []byte
	blocks       []block          // committed, in order
	staged       map[string]block // uncommitted, by id
	committed    bool             // false while there are only staged blocks: the blob does not exist yet
	etag         string
	created      time.Time
	lastModified time.Time
	headers      map[string]string // Content-Type and its like
	metadata     map[string]string
	tags         map[string]string
	tier         string    // "" is inferred from the account
	tiered       time.Time // when the tier was set
	lease        lease
	snapshots    []*blobState // oldest first
	snapshot     string       // the timestamp of a snapshot; "" for the blob itself
	sequence     int64        // page blobs
	Pages        pages.Pages  // page blobs, instead of content
	paged        pagedWrite   // page blobs: the last one
	blockCount   int          // append blobs
	sealed       bool         // append blobs
	copied       *copyState
}

type block struct {
	id   string
	data []byte
}

func (s *Service) newContainer(name string) *containerState {
	return &containerState{
		name: name, etag: s.newETag(), lastModified: now(), metadata: map[string]string{}, blobs: map[string]*blobState{},
	}
}

// touch gives the blob a new version. It also ends an expired lease: its holder can no longer renew it (REST: "Lease
// Blob", a lease may be renewed after expiry as long as the blob has not been modified).
func (s *Service) touch(b *blobState) {
	b.etag, b.lastModified = s.newETag(), now()
	b.lease.forgetIfOver()
}

// blob returns an existing blob, or nil: staged blocks alone are not a blob.
func (c *containerState) blob(name string) *blobState {
	b := c.blobs[name]
	if b == nil || !b.committed {
		return nil
	}
	return b
}

// contentHeaders maps the request headers that set a blob's HTTP headers to the response headers that show them.
var contentHeaders = map[string]string{
	"X-Ms-Blob-Content-Type":        "Content-Type",
	"X-Ms-Blob-Content-Encoding":    "Content-Encoding",
	"X-Ms-Blob-Content-Language":    "Content-Language",
	"X-Ms-Blob-Content-Disposition": "Content-Disposition",
	"X-Ms-Blob-Cache-Control":       "Cache-Control",
	"X-Ms-Blob-Content-Md5":         "Content-Md5",
}

func headersOf(r *request) map[string]string {
	headers := map[string]string{}
	for from, to := range contentHeaders {
		if v := r.header.Get(from); v != "" {
			headers[to] = v
		}
	}
	return headers
}

const metadataPrefix = "X-Ms-Meta-"

// metadataOf reads a request's metadata. The service limits names to identifiers and all of it to 8 KB.
func metadataOf(r *request) (map[string]string, *answer) {
	metadata := map[string]string{}
	size := 0
	for name, values := range r.header {
		key, isMetadata := strings.CutPrefix(name, metadataPrefix)
		if !isMetadata {
			continue
		}
		key = strings.ToLower(key)
		if key == "" {
			return nil, fail(http.StatusBadRequest, "EmptyMetadataKey", "The key for one of the metadata key-value pairs is empty.")
		}
		if !identifier(key) {
			return nil, fail(http.StatusBadRequest, "InvalidMetadata", "The metadata specified is invalid. It has characters that are not permitted.")
		}
		metadata[key] = values[0]
		size += len(key) + len(values[0])
	}
	if size > 8<<10 {
		return nil, fail(http.StatusBadRequest, "MetadataTooLarge", "The metadata specified exceeds the maximum permissible limit (8KB).")
	}
	return metadata, nil
}

func identifier(s string) bool {
	for i, c := range s {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// version adds the headers of a version to a response.
func (a *answer) version(etag string, modified time.Time) *answer {
	return a.set("ETag", etag).set("Last-Modified", modified.Format(http.TimeFormat))
}

// describing adds metadata to a response.
func (a *answer) describing(metadata map[string]string) *answer {
	for name, value := range metadata {
		a.header.Set("x-ms-meta-"+name, value) // also if it is empty
	}
	return a
}

// properties adds the headers with which Get Blob and Get Blob Properties describe a blob.
func (a *answer) properties(b *blobState, version string, head bool) *answer {
	a.version(b.etag, b.lastModified)
	a.set("x-ms-blob-type", b.kind).set("x-ms-creation-time", b.created.Format(http.TimeFormat)).set("Accept-Ranges", "bytes")
	a.set("x-ms-server-encrypted", "true")
	for name, value := range b.headers {
		a.set(name, value)
	}
	for name, value := range b.metadata {
		a.header.Set("x-ms-meta-"+name, value) // also if it is empty
	}
	if len(b.tags) > 0 {
		a.set("x-ms-tag-count", strconv.Itoa(len(b.tags)))
	}
	switch b.kind {
	case "PageBlob":
		a.set("x-ms-blob-sequence-number", strconv.FormatInt(b.sequence, 10))
	case "AppendBlob":
		a.set("x-ms-blob-committed-block-count", strconv.Itoa(b.blockCount))
		if b.sealed {
			a.set("x-ms-blob-sealed", "true")
		}
	}
	b.copied.describe(a)
	if b.snapshot != "" {
		if version < "2019-12-12" {
			a.set("x-ms-snapshot", b.snapshot)
		}
	} else {
		b.lease.describe(a)
	}
	if head { // Get Blob does not return the tier
		if b.tier == "" {
			a.set("x-ms-access-tier", "Hot").set("x-ms-access-tier-inferred", "true")
		} else {
			a.set("x-ms-access-tier", b.tier).set("x-ms-access-tier-change-time", b.tiered.Format(http.TimeFormat))
		}
	}
	return a
}
