package blobservice

import (
	"net/http"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// putBlob creates or overwrites a blob of any type.
func (s *Service) putBlob(r *storage.Request, c *containerState, old *blobState, cond conditions) *storage.Answer {
	if a := admitNew(r, c, old, cond); a != nil {
		return a
	}
	b, a := s.fresh(r, c, old)
	if a != nil {
		return a
	}
	switch b.kind = r.Header.Get("X-Ms-Blob-Type"); b.kind {
	case "BlockBlob":
		b.content = r.Body
		if b.headers["Content-Md5"] == "" {
			b.headers["Content-Md5"] = contentMD5(r.Body)
		}
	case "AppendBlob":
	case "PageBlob":
		if a := b.initPages(r); a != nil {
			return a
		}
	default:
		return storage.InvalidHeader("x-ms-blob-type", b.kind)
	}
	return s.store(r, c, b)
}

// admitNew checks the conditions and the lease of a request that creates or overwrites a blob. A lease id without a
// blob is refused (REST: since 2013-08-15).
func admitNew(r *storage.Request, c *containerState, old *blobState, cond conditions) *storage.Answer {
	if a := cond.write(old, true); a != nil {
		return a
	}
	held := &storage.Lease{}
	if b := c.blobs[r.Blob]; b != nil {
		held = &b.Lease
	}
	return held.Check(r, "Blob", true)
}

// fresh returns the blob that overwrites old. Content, metadata, headers and tags are the request's. The tier is
// inherited unless the request sets one ("Hot, cool and archive access tiers"), and so are the lease, the snapshots and
// the time of creation.
func (s *Service) fresh(r *storage.Request, c *containerState, old *blobState) (*blobState, *storage.Answer) {
	metadata, a := storage.MetadataOf(r)
	if a != nil {
		return nil, a
	}
	tags, a := headerTags(r)
	if a != nil {
		return nil, a
	}
	b := &blobState{
		committed: true, created: storage.Now(), metadata: metadata, tags: tags, headers: headersOf(r), tier: r.Header.Get("X-Ms-Access-Tier"),
	}
	if b.headers["Content-Type"] == "" {
		b.headers["Content-Type"] = "application/octet-stream"
		if given := r.Header.Get("Content-Type"); given != "" && r.Query.Get("comp") == "" {
			b.headers["Content-Type"] = given // of the content; that of Put Block List is of the list
		}
	}
	if staged := c.blobs[r.Blob]; staged != nil {
		b.Lease = staged.Lease
	}
	if b.tier != "" {
		b.tiered = storage.Now()
	}
	if old != nil {
		b.snapshots, b.created = old.snapshots, old.created
		if b.tier == "" {
			b.tier, b.tiered = old.tier, old.tiered
		}
	}
	return b, nil
}

func (s *Service) store(r *storage.Request, c *containerState, b *blobState) *storage.Answer {
	s.Touch(&b.Versioned)
	c.blobs[r.Blob] = b
	a := storage.OK(http.StatusCreated).Version(&b.Versioned).Set("x-ms-request-server-encrypted", "true")
	if a.Checked(r); b.kind == "BlockBlob" {
		a.Set("Content-MD5", b.headers["Content-Md5"])
	}
	return a
}
