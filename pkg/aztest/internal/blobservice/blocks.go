package blobservice

import (
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// putBlock stages a block. Its only condition is the lease, and it does not change the blob.
func (s *Service) putBlock(r *storage.Request, c *containerState) *storage.Answer {
	id := r.Query.Get("blockid")
	if raw, err := base64.StdEncoding.DecodeString(id); err != nil || len(raw) == 0 || len(raw) > 64 {
		return storage.InvalidQuery()
	}
	b := c.blobs[r.Blob]
	if b == nil {
		b = &blobState{kind: "BlockBlob"}
		c.blobs[r.Blob] = b
	}
	if b.kind != "BlockBlob" {
		return invalidBlobType()
	}
	if a := b.Lease.Check(r, "Blob", true); a != nil {
		return a
	}
	for _, known := range b.staged {
		if len(known.id) != len(id) {
			return storage.Fail(http.StatusBadRequest, "InvalidBlobOrBlock", "The specified blob or block content is invalid: all block ids of a blob have one length.")
		}
		break
	}
	if b.staged == nil {
		b.staged = map[string]block{}
	}
	b.staged[id] = block{id: id, data: r.Body}
	return storage.OK(http.StatusCreated).Checked(r).Set("x-ms-request-server-encrypted", "true")
}

// uncommitted is the version that the service shows for staged blocks without a blob.
var uncommitted = storage.Versioned{ETag: `"0x701CE1722770000"`, LastModified: time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)}

type blockListBody struct {
	Items []struct {
		XMLName xml.Name
		ID      string `xml:",chardata"`
	} `xml:",any"`
}

// putBlockList makes the blob of blocks, and drops every other staged block. So a commit discards the blocks that other
// uploads have staged.
func (s *Service) putBlockList(r *storage.Request, c *containerState, cond conditions) *storage.Answer {
	old := c.blob(r.Blob)
	if a := cond.write(old, true); a != nil {
		return a
	}
	holder := c.blobs[r.Blob] // may hold staged blocks only
	if old == nil && holder != nil && !uncommitted.LastModified.After(cond.modified) {
		return conditionNotMet(http.StatusPreconditionFailed)
	}
	if holder == nil {
		holder = &blobState{kind: "BlockBlob"}
	}
	if holder.kind != "BlockBlob" {
		return invalidBlobType()
	}
	if a := holder.Lease.Check(r, "Blob", true); a != nil {
		return a
	}
	var list blockListBody
	if err := xml.Unmarshal(r.Body, &list); err != nil {
		return storage.InvalidXML()
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
			return storage.Fail(http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid.")
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

func (s *Service) getBlockList(r *storage.Request, c *containerState, cond conditions) *storage.Answer {
	b := c.blobs[r.Blob]
	if at := r.Query.Get("snapshot"); b != nil && at != "" {
		b = b.at(at)
	}
	if b == nil {
		return noSuchBlob()
	}
	// The operation supports conditions on tags, not on the version (REST: "Get Block List").
	if a := (conditions{tags: cond.tags}).tagged(b); a != nil {
		return a
	}
	if a := b.Lease.Check(r, "Blob", false); a != nil {
		return a
	}
	which := r.Query.Get("blocklisttype")
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
	a := storage.XML(lists)
	if b.committed {
		a.Version(&b.Versioned).Set("x-ms-blob-content-length", strconv.Itoa(len(b.content)))
	}
	return a
}

func invalidBlobType() *storage.Answer {
	return storage.Fail(http.StatusConflict, "InvalidBlobType", "The blob type is invalid for this operation.")
}

// appendBlock adds to an append blob, under conditions on its length.
func (s *Service) appendBlock(r *storage.Request, b *blobState) *storage.Answer {
	switch {
	case b.kind != "AppendBlob":
		return invalidBlobType()
	case b.sealed:
		return storage.Fail(http.StatusConflict, "BlobIsSealed", "The specified blob is sealed and its contents can't be modified.")
	case b.blockCount >= 50000:
		return storage.Fail(http.StatusConflict, "BlockCountExceedsLimit", "The committed block count cannot exceed the maximum limit of 50,000 blocks.")
	}
	if a := negative(r, "X-Ms-Blob-Condition-Appendpos", "X-Ms-Blob-Condition-Maxsize"); a != nil {
		return a
	}
	if len(r.Body) == 0 {
		return storage.InvalidHeader("Content-Length", "0")
	}
	length := int64(len(b.content))
	if at, given := number(r, "X-Ms-Blob-Condition-Appendpos"); given && at != length {
		return appendPositionNotMet()
	}
	if limit, given := number(r, "X-Ms-Blob-Condition-Maxsize"); given && length+int64(len(r.Body)) > limit {
		return storage.Fail(http.StatusPreconditionFailed, "MaxBlobSizeConditionNotMet", "The max blob size condition specified was not met.")
	}
	// A reader of the old version keeps a slice of the old length, so the room behind it may be written. Only this blob
	// may do so: copies and snapshots never grow in place.
	b.content = append(b.content, r.Body...)
	b.blockCount++
	s.Touch(&b.Versioned)
	return storage.OK(http.StatusCreated).Version(&b.Versioned).Checked(r).
		Set("x-ms-blob-append-offset", strconv.FormatInt(length, 10)).
		Set("x-ms-blob-committed-block-count", strconv.Itoa(b.blockCount))
}

func appendPositionNotMet() *storage.Answer {
	return storage.Fail(http.StatusPreconditionFailed, "AppendPositionConditionNotMet", "The append position condition specified was not met.")
}

// sealAppend makes an append blob read-only. Sealing twice is no change.
func (s *Service) sealAppend(r *storage.Request, b *blobState) *storage.Answer {
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
		s.Touch(&b.Versioned)
	}
	return storage.OK(http.StatusOK).Version(&b.Versioned).Set("x-ms-blob-sealed", "true")
}

// negative refuses positions and lengths below zero.
func negative(r *storage.Request, headers ...string) *storage.Answer {
	for _, name := range headers {
		if n, given := number(r, name); given && n < 0 {
			return storage.InvalidHeader(name, r.Header.Get(name))
		}
	}
	return nil
}

func number(r *storage.Request, header string) (int64, bool) {
	n, err := strconv.ParseInt(r.Header.Get(header), 10, 64)
	return n, err == nil
}
