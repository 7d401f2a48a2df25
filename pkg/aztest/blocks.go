package aztest

import (
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// putBlock stages a block. Its only condition is the lease, and it does not change the blob.
func (s *Service) putBlock(r *request, c *containerState) *answer {
	id := r.query.Get("blockid")
	if raw, err := base64.StdEncoding.DecodeString(id); err != nil || len(raw) == 0 || len(raw) > 64 {
		return invalidQuery()
	}
	b := c.blobs[r.blob]
	if b == nil {
		b = &blobState{kind: "BlockBlob"}
		c.blobs[r.blob] = b
	}
	if b.kind != "BlockBlob" {
		return invalidBlobType()
	}
	if a := b.lease.check(r, "Blob", true); a != nil {
		return a
	}
	for _, known := range b.staged {
		if len(known.id) != len(id) {
			return fail(http.StatusBadRequest, "InvalidBlobOrBlock", "The specified blob or block content is invalid: all block ids of a blob have one length.")
		}
		break
	}
	if b.staged == nil {
		b.staged = map[string]block{}
	}
	b.staged[id] = block{id: id, data: r.body}
	return ok(http.StatusCreated).checked(r).set("x-ms-request-server-encrypted", "true")
}

// The version that the service shows for staged blocks without a blob.
const uncommittedETag = `"0x701CE1722770000"`

var uncommittedTime = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)

type blockListBody struct {
	Items []struct {
		XMLName xml.Name
		ID      string `xml:",chardata"`
	} `xml:",any"`
}

// putBlockList makes the blob of blocks, and drops every other staged block. So a commit discards the blocks that other
// uploads have staged.
func (s *Service) putBlockList(r *request, c *containerState, cond conditions) *answer {
	old := c.blob(r.blob)
	if a := cond.write(old, true); a != nil {
		return a
	}
	holder := c.blobs[r.blob] // may hold staged blocks only
	if old == nil && holder != nil && cond.hasModified && !uncommittedTime.After(cond.modified) {
		return conditionNotMet(http.StatusPreconditionFailed)
	}
	if holder == nil {
		holder = &blobState{kind: "BlockBlob"}
	}
	if holder.kind != "BlockBlob" {
		return invalidBlobType()
	}
	if a := holder.lease.check(r, "Blob", true); a != nil {
		return a
	}
	var list blockListBody
	if err := xml.Unmarshal(r.body, &list); err != nil {
		return fail(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid.")
	}
	committed := map[string]block{}
	for _, b := range holder.blocks {
		committed[b.id] = b
	}
	var blocks []block
	for _, item := range list.Items {
		staged, isStaged := holder.staged[item.ID]
		kept, isKept := committed[item.ID]
		switch from := item.XMLName.Local; {
		case isStaged && from != "Committed": // also for Latest, which prefers what was staged
			blocks = append(blocks, staged)
		case isKept && from != "Uncommitted":
			blocks = append(blocks, kept)
		default:
			return fail(http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid.")
		}
	}
	b, a := s.fresh(r, c, old)
	if a != nil {
		return a
	}
	b.kind, b.blocks, b.content = "BlockBlob", blocks, joinBlocks(blocks)
	return s.store(r, c, b)
}

// joinBlocks returns the content of blocks. The blocks share its memory.
func joinBlocks(blocks []block) []byte {
	if len(blocks) == 1 {
		return blocks[0].data
	}
	size := 0
	for _, b := range blocks {
		size += len(b.data)
	}
	content := make([]byte, 0, size)
	for i := range blocks {
		at := len(content)
		content = append(content, blocks[i].data...)
		blocks[i].data = content[at:len(content):len(content)]
	}
	return content
}

type listedBlock struct {
	Name string
	Size int
}

type blockLists struct {
	XMLName     xml.Name      `xml:"BlockList"`
	Committed   []listedBlock `xml:"CommittedBlocks>Block"`
	Uncommitted []listedBlock `xml:"UncommittedBlocks>Block"`
}

func (s *Service) getBlockList(r *request, c *containerState, cond conditions) *answer {
	b := c.blobs[r.blob]
	if at := r.query.Get("snapshot"); b != nil && at != "" {
		b = b.at(at)
	}
	if b == nil {
		return noSuchBlob()
	}
	// The operation supports conditions on tags, not on the version (REST: "Get Block List").
	if a := (conditions{tags: cond.tags}).tagged(b); a != nil {
		return a
	}
	if a := b.lease.check(r, "Blob", false); a != nil {
		return a
	}
	which := r.query.Get("blocklisttype")
	lists := blockLists{}
	if which != "uncommitted" {
		for _, one := range b.blocks {
			lists.Committed = append(lists.Committed, listedBlock{one.id, len(one.data)})
		}
	}
	if which == "uncommitted" || which == "all" {
		for _, one := range b.staged {
			lists.Uncommitted = append(lists.Uncommitted, listedBlock{one.id, len(one.data)})
		}
		slices.SortFunc(lists.Uncommitted, func(x, y listedBlock) int {
			if x.Name < y.Name {
				return -1
			}
			return 1
		})
	}
	a := xmlAnswer(lists)
	if b.committed {
		a.version(b.etag, b.lastModified).set("x-ms-blob-content-length", strconv.Itoa(len(b.content)))
	}
	return a
}

func invalidBlobType() *answer {
	return fail(http.StatusConflict, "InvalidBlobType", "The blob type is invalid for this operation.")
}

// appendBlock adds to an append blob, under conditions on its length.
func (s *Service) appendBlock(r *request, b *blobState) *answer {
	switch {
	case b.kind != "AppendBlob":
		return invalidBlobType()
	case b.sealed:
		return fail(http.StatusConflict, "BlobIsSealed", "The specified blob is sealed and its contents can't be modified.")
	case b.blockCount >= 50000:
		return fail(http.StatusConflict, "BlockCountExceedsLimit", "The committed block count cannot exceed the maximum limit of 50,000 blocks.")
	}
	if a := negative(r, "X-Ms-Blob-Condition-Appendpos", "X-Ms-Blob-Condition-Maxsize"); a != nil {
		return a
	}
	if len(r.body) == 0 {
		return invalidHeader("Content-Length", "0")
	}
	length := int64(len(b.content))
	if at, given := number(r, "X-Ms-Blob-Condition-Appendpos"); given && at != length {
		return appendPositionNotMet()
	}
	if limit, given := number(r, "X-Ms-Blob-Condition-Maxsize"); given && length+int64(len(r.body)) > limit {
		return fail(http.StatusPreconditionFailed, "MaxBlobSizeConditionNotMet", "The max blob size condition specified was not met.")
	}
	// A reader of the old version keeps a slice of the old length, so the room behind it may be written. Only this blob
	// may do so: copies and snapshots never grow in place.
	b.content = append(b.content, r.body...)
	b.blockCount++
	s.touch(b)
	return ok(http.StatusCreated).version(b.etag, b.lastModified).checked(r).
		set("x-ms-blob-append-offset", strconv.FormatInt(length, 10)).
		set("x-ms-blob-committed-block-count", strconv.Itoa(b.blockCount))
}

func appendPositionNotMet() *answer {
	return fail(http.StatusPreconditionFailed, "AppendPositionConditionNotMet", "The append position condition specified was not met.")
}

// sealAppend makes an append blob read-only. Sealing twice is no change.
func (s *Service) sealAppend(r *request, b *blobState) *answer {
	if b.kind != "AppendBlob" {
		return invalidBlobType()
	}
	if a := negative(r, "X-Ms-Blob-Condition-Appendpos"); a != nil {
		return a
	}
	if at, given := number(r, "X-Ms-Blob-Condition-Appendpos"); given && at != int64(len(b.content)) {
		return appendPositionNotMet()
	}
	if !b.sealed {
		b.sealed = true
		s.touch(b)
	}
	return ok(http.StatusOK).version(b.etag, b.lastModified).set("x-ms-blob-sealed", "true")
}

// negative refuses positions and lengths below zero.
func negative(r *request, headers ...string) *answer {
	for _, name := range headers {
		if n, given := number(r, name); given && n < 0 {
			return invalidHeader(name, r.header.Get(name))
		}
	}
	return nil
}

func number(r *request, header string) (int64, bool) {
	n, err := strconv.ParseInt(r.header.Get(header), 10, 64)
	return n, err == nil
}
