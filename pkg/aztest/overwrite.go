package aztest

import "net/http"

// putBlob creates or overwrites a blob of any type.
func (s *Service) putBlob(r *request, c *containerState, old *blobState, cond conditions) *answer {
	if a := admitNew(r, c, old, cond); a != nil {
		return a
	}
	b, a := s.fresh(r, c, old)
	if a != nil {
		return a
	}
	switch b.kind = r.header.Get("X-Ms-Blob-Type"); b.kind {
	case "BlockBlob":
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

// admitNew checks the conditions and the lease of a request that creates or overwrites a blob. A lease id without a
// blob is refused (REST: since 2013-08-15).
func admitNew(r *request, c *containerState, old *blobState, cond conditions) *answer {
	if a := cond.write(old, true); a != nil {
		return a
	}
	held := &lease{}
	if b := c.blobs[r.blob]; b != nil {
		held = &b.lease
	}
	return held.check(r, "Blob", true)
}

// fresh returns the blob that overwrites old. Content, metadata, headers and tags are the request's. The tier is
// inherited unless the request sets one ("Hot, cool and archive access tiers"), and so are the lease, the snapshots and
// the time of creation.
func (s *Service) fresh(r *request, c *containerState, old *blobState) (*blobState, *answer) {
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
		if given := r.header.Get("Content-Type"); given != "" && r.query.Get("comp") == "" {
			b.headers["Content-Type"] = given // of the content; that of Put Block List is of the list
		}
	}
	if staged := c.blobs[r.blob]; staged != nil {
		b.lease = staged.lease
	}
	if b.tier != "" {
		b.tiered = now()
	}
	if old != nil {
		b.snapshots, b.created = old.snapshots, old.created
		if b.tier == "" {
			b.tier, b.tiered = old.tier, old.tiered
		}
	}
	return b, nil
}

func (s *Service) store(r *request, c *containerState, b *blobState) *answer {
	s.touch(b)
	c.blobs[r.blob] = b
	a := ok(http.StatusCreated).version(b.etag, b.lastModified).set("x-ms-request-server-encrypted", "true")
	if a.checked(r); b.kind == "BlockBlob" {
		a.set("Content-MD5", b.headers["Content-Md5"])
	}
	return a
}
