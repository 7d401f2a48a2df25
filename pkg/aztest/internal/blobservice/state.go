package blobservice

import (
	"net/http"
	"strconv"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/pages"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Host is where the SDK's clients send requests to the Blob service: that of an emulator on this machine, where nothing
// listens.
const Host = "127.0.0.1:10000"

// Service is the Blob service's part of the account.
type Service struct {
	*storage.Account
	containers map[string]*containerState
	copies     uint64
	copiesPend bool
	snapped    time.Time // the last snapshot's
	properties []byte    // of the service, as they were set
}

// New returns an empty Blob service of an account.
func New(a *storage.Account) *Service {
	return &Service{Account: a, containers: map[string]*containerState{}}
}

// Ensure creates a container if it is missing.
func (s *Service) Ensure(name string) {
	if s.containers[name] == nil {
		s.containers[name] = s.newContainer(name)
	}
}

// Properties returns the service's settings, as they were set.
func (s *Service) Properties() []byte { return s.properties }

// Policies returns the stored access policies of a container.
func (s *Service) Policies(name string) []byte {
	if c := s.containers[name]; c != nil {
		return c.acl
	}
	return nil
}

// Public returns what is public of a container.
func (s *Service) Public(name string) string {
	if c := s.containers[name]; c != nil {
		return c.access
	}
	return ""
}

// Exists reports whether a blob is there.
func (s *Service) Exists(containerName, name string) bool {
	c := s.containers[containerName]
	return c != nil && c.blob(name) != nil
}

// containerState is a container as the service keeps it.
type containerState struct {
	name         string
	etag         string
	lastModified time.Time
	metadata     map[string]string
	access       string // x-ms-blob-public-access
	acl          []byte
	lease        storage.Lease
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
	lease        storage.Lease
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
		name: name, etag: s.NewETag(), lastModified: storage.Now(), metadata: map[string]string{}, blobs: map[string]*blobState{},
	}
}

// touch gives the blob a new version. It also ends an expired lease: its holder can no longer renew it (REST: "Lease
// Blob", a lease may be renewed after expiry as long as the blob has not been modified).
func (s *Service) touch(b *blobState) {
	b.etag, b.lastModified = s.NewETag(), storage.Now()
	b.lease.ForgetIfOver()
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

func headersOf(r *storage.Request) map[string]string {
	headers := map[string]string{}
	for from, to := range contentHeaders {
		if v := r.Header.Get(from); v != "" {
			headers[to] = v
		}
	}
	return headers
}

// properties adds the headers with which Get Blob and Get Blob Properties describe a blob.
func describeBlob(a *storage.Answer, b *blobState, version string, head bool) *storage.Answer {
	a.Version(b.etag, b.lastModified)
	a.Set("x-ms-blob-type", b.kind).Set("x-ms-creation-time", b.created.Format(http.TimeFormat)).Set("Accept-Ranges", "bytes")
	a.Set("x-ms-server-encrypted", "true")
	for name, value := range b.headers {
		a.Set(name, value)
	}
	for name, value := range b.metadata {
		a.Header.Set("x-ms-meta-"+name, value) // also if it is empty
	}
	if len(b.tags) > 0 {
		a.Set("x-ms-tag-count", strconv.Itoa(len(b.tags)))
	}
	switch b.kind {
	case "PageBlob":
		a.Set("x-ms-blob-sequence-number", strconv.FormatInt(b.sequence, 10))
	case "AppendBlob":
		a.Set("x-ms-blob-committed-block-count", strconv.Itoa(b.blockCount))
		if b.sealed {
			a.Set("x-ms-blob-sealed", "true")
		}
	}
	b.copied.describe(a)
	if b.snapshot != "" {
		if version < "2019-12-12" {
			a.Set("x-ms-snapshot", b.snapshot)
		}
	} else {
		b.lease.Describe(a)
	}
	if head { // Get Blob does not return the tier
		if b.tier == "" {
			a.Set("x-ms-access-tier", "Hot").Set("x-ms-access-tier-inferred", "true")
		} else {
			a.Set("x-ms-access-tier", b.tier).Set("x-ms-access-tier-change-time", b.tiered.Format(http.TimeFormat))
		}
	}
	return a
}
