package aztest

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"
)

// appendBlock adds to an append blob, under conditions on its length.
func (s *Service) appendBlock(r *request, b *blobState) *answer {
	switch {
	case b.kind != "AppendBlob":
		return fail(http.StatusConflict, "InvalidBlobType", "The blob type is invalid for this operation.")
	case b.sealed:
		return fail(http.StatusConflict, "BlobIsSealed", "The specified blob is sealed and its contents can't be modified.")
	}
	length := int64(len(b.content))
	if at, given := number(r, "X-Ms-Blob-Condition-Appendpos"); given && at != length {
		return fail(http.StatusPreconditionFailed, "AppendPositionConditionNotMet", "The append position condition specified was not met.")
	}
	if limit, given := number(r, "X-Ms-Blob-Condition-Maxsize"); given && length+int64(len(r.body)) > limit {
		return fail(http.StatusPreconditionFailed, "MaxBlobSizeConditionNotMet", "The max blob size condition specified was not met.")
	}
	// Readers of the old version hold on to the old slice: clip, so that growing copies.
	b.content = append(slices.Clip(b.content), r.body...)
	b.blockCount++
	s.touch(b)
	return ok(http.StatusCreated).version(b.etag, b.lastModified).
		set("x-ms-blob-append-offset", strconv.FormatInt(length, 10)).
		set("x-ms-blob-committed-block-count", strconv.Itoa(b.blockCount))
}

func (s *Service) sealAppend(r *request, b *blobState) *answer {
	if b.kind != "AppendBlob" {
		return fail(http.StatusConflict, "InvalidBlobType", "The blob type is invalid for this operation.")
	}
	if at, given := number(r, "X-Ms-Blob-Condition-Appendpos"); given && at != int64(len(b.content)) {
		return fail(http.StatusPreconditionFailed, "AppendPositionConditionNotMet", "The append position condition specified was not met.")
	}
	if !b.sealed {
		b.sealed = true
		s.touch(b)
	}
	return ok(http.StatusOK).version(b.etag, b.lastModified).set("x-ms-blob-sealed", "true")
}

func number(r *request, header string) (int64, bool) {
	n, err := strconv.ParseInt(r.header.Get(header), 10, 64)
	return n, err == nil
}

// pageRange is a range of a page blob that has been written, both ends included.
type pageRange struct {
	XMLName xml.Name `xml:"PageRange"`
	Start   int64
	End     int64
}

const pageSize = 512

func (b *blobState) initPages(r *request) *answer {
	size, given := number(r, "X-Ms-Blob-Content-Length")
	if !given || size%pageSize != 0 {
		return invalidHeader("x-ms-blob-content-length", r.header.Get("X-Ms-Blob-Content-Length"))
	}
	b.content = make([]byte, size)
	b.sequence, _ = number(r, "X-Ms-Blob-Sequence-Number")
	return nil
}

// putPage writes or clears pages, under conditions on the sequence number.
func (s *Service) putPage(r *request, b *blobState) *answer {
	if b.kind != "PageBlob" {
		return fail(http.StatusConflict, "InvalidBlobType", "The blob type is invalid for this operation.")
	}
	for header, met := range map[string]func(n int64) bool{
		"X-Ms-If-Sequence-Number-Le": func(n int64) bool { return b.sequence <= n },
		"X-Ms-If-Sequence-Number-Lt": func(n int64) bool { return b.sequence < n },
		"X-Ms-If-Sequence-Number-Eq": func(n int64) bool { return b.sequence == n },
	} {
		if n, given := number(r, header); given && !met(n) {
			return fail(http.StatusPreconditionFailed, "SequenceNumberConditionNotMet", "The sequence number condition specified was not met.")
		}
	}
	header := r.header.Get("X-Ms-Range")
	if header == "" {
		header = r.header.Get("Range")
	}
	first, last, err := byteRange(header, int64(len(b.content)))
	if err != nil || first%pageSize != 0 || (last+1)%pageSize != 0 {
		return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidPageRange", "The page range specified is invalid.")
	}
	content := slices.Clone(b.content)
	clearing := r.header.Get("X-Ms-Page-Write") == "clear"
	switch {
	case clearing:
		clear(content[first : last+1])
	case int64(len(r.body)) != last+1-first:
		return fail(http.StatusBadRequest, "InvalidHeaderValue", "The length of the content does not fit the range.")
	default:
		copy(content[first:], r.body)
	}
	b.content = content
	b.mark(first, last, !clearing)
	s.touch(b)
	return ok(http.StatusCreated).version(b.etag, b.lastModified).set("x-ms-blob-sequence-number", strconv.FormatInt(b.sequence, 10))
}

// mark notes which pages have been written.
func (b *blobState) mark(first, last int64, written bool) {
	pages := make([]bool, len(b.content)/pageSize)
	for _, r := range b.ranges {
		for p := r.Start / pageSize; p <= r.End/pageSize && p < int64(len(pages)); p++ {
			pages[p] = true
		}
	}
	for p := first / pageSize; p <= last/pageSize; p++ {
		pages[p] = written
	}
	b.ranges = nil
	for p := 0; p < len(pages); p++ {
		if !pages[p] {
			continue
		}
		start := p
		for p+1 < len(pages) && pages[p+1] {
			p++
		}
		b.ranges = append(b.ranges, pageRange{Start: int64(start) * pageSize, End: int64(p+1)*pageSize - 1})
	}
}

func (b *blobState) pageList(*request) *answer {
	if b.kind != "PageBlob" {
		return fail(http.StatusConflict, "InvalidBlobType", "The blob type is invalid for this operation.")
	}
	a := xmlAnswer(struct {
		XMLName xml.Name `xml:"PageList"`
		Ranges  []pageRange
	}{Ranges: b.ranges})
	return a.version(b.etag, b.lastModified).set("x-ms-blob-content-length", strconv.Itoa(len(b.content)))
}

// resize changes a page blob's size and sequence number.
func (b *blobState) resize(r *request) *answer {
	if b.kind != "PageBlob" {
		return fail(http.StatusConflict, "InvalidBlobType", "The blob type is invalid for this operation.")
	}
	if size, given := number(r, "X-Ms-Blob-Content-Length"); given {
		if size%pageSize != 0 {
			return invalidHeader("x-ms-blob-content-length", strconv.FormatInt(size, 10))
		}
		content := make([]byte, size)
		copy(content, b.content)
		b.content = content
		if size > 0 && len(b.ranges) > 0 {
			b.mark(0, -1, true) // drops what lies beyond
		}
	}
	n, given := number(r, "X-Ms-Blob-Sequence-Number")
	switch action := r.header.Get("X-Ms-Sequence-Number-Action"); action {
	case "":
	case "increment":
		b.sequence++
	case "max", "update":
		if !given || n < 0 {
			return invalidHeader("x-ms-blob-sequence-number", r.header.Get("X-Ms-Blob-Sequence-Number"))
		}
		if action == "update" || n > b.sequence {
			b.sequence = n
		}
	default:
		return invalidHeader("x-ms-sequence-number-action", action)
	}
	return nil
}
