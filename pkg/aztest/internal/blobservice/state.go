// Package blobservice is the Blob service of an account in memory: containers, blobs of all types, snapshots, copies, index tags and leases.
//
// Route carries out one request, at once. Nothing here locks: package aztest calls a service with its lock held.
package blobservice

import (
	"net/http"
	"strconv"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Host is where the SDK's clients send requests to the Blob service: that of an emulator on this machine, where nothing
// listens.
const Host = "127.0.0.1:10000"

// Service is the Blob service's part of the account.
type Service struct {
	storage.Service[*containerState]
	copies     uint64
	copiesPend bool
	snapped    time.Time // the last snapshot's
}

// New returns an empty Blob service of an account.
func New(a *storage.Account) *Service {
	s := &Service{}
	s.Account, s.Make = a, func() *containerState {
		c := &containerState{blobs: map[string]*blobState{}}
		a.Touch(&c.Versioned)
		return c
	}
	return s
}

// Public returns what is public of a container.
func (s *Service) Public(name string) string {
	if c := s.Find(name); c != nil {
		return c.access
	}
	return ""
}

// Exists reports whether a blob is there.
func (s *Service) Exists(containerName, name string) bool {
	c := s.Find(containerName)
	return c != nil && c.blob(name) != nil
}

// containerState is a container as the service keeps it.
type containerState struct {
	storage.Resource
	access string // x-ms-blob-public-access
	blobs  map[string]*blobState
}

// blobState is a blob as the service keeps it. Content is never changed in place, because readers keep it and copies
// share it; an append blob grows behind the end that readers know.
type blobState struct {
	storage.Versioned
	kind       string // BlockBlob, AppendBlob, PageBlob
	content    []byte
	blocks     []block          // committed, in order
	staged     map[string]block // uncommitted, by id
	committed  bool             // false while there are only staged blocks: the blob does not exist yet
	created    time.Time
	headers    map[string]string // Content-Type and its like
	metadata   map[string]string
	tags       map[string]string
	tier       string        // "" is inferred from the account
	tiered     time.Time     // when the tier was set
	snapshots  []*blobState  // oldest first
	snapshot   string        // the timestamp of a snapshot; "" for the blob itself
	sequence   int64         // page blobs
	Pages      storage.Pages // page blobs, instead of content
	blockCount int           // append blobs
	sealed     bool          // append blobs
	copied     *copyState
}

type block struct {
	id   string
	data []byte
}

// blob returns an existing blob, or nil: staged blocks alone are not a blob.
func (c *containerState) blob(name string) *blobState {
	b := c.blobs[name]
	if b == nil || !b.committed {
		return nil
	}
	return b
}

// version returns an existing blob, or with a time its snapshot of then; nil if there is none.
func (c *containerState) version(name, snapshot string) *blobState {
	b := c.blob(name)
	if b == nil || snapshot == "" {
		return b
	}
	return b.at(snapshot)
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

// describeBlob adds the headers with which Get Blob and Get Blob Properties describe a blob.
func describeBlob(a *storage.Answer, b *blobState, version string, head bool) *storage.Answer {
	a.Version(&b.Versioned)
	a.Set("x-ms-blob-type", b.kind).Set("x-ms-creation-time", b.created.Format(http.TimeFormat)).Set("Accept-Ranges", "bytes")
	a.Set("x-ms-server-encrypted", "true")
	for name, value := range b.headers {
		a.Set(name, value)
	}
	a.Describing(b.metadata)
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
		b.Lease.Describe(a)
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
