package aztest

import (
	"encoding/xml"
	"net/http"
	"strconv"

	"github.com/azconc/azconc/pkg/aztest/internal/pages"
)

const maxPageWrite = 4 << 20 // the most that one Put Page takes

func (b *blobState) initPages(r *request) *answer {
	size, given := number(r, "X-Ms-Blob-Content-Length")
	if !given || size < 0 || size%pages.Size != 0 || size > pages.Max {
		return invalidHeader("x-ms-blob-content-length", r.header.Get("X-Ms-Blob-Content-Length"))
	}
	b.Pages.Size = size
	b.sequence, _ = number(r, "X-Ms-Blob-Sequence-Number")
	return nil
}

// sequenceMet evaluates the conditions on the sequence number.
func (b *blobState) sequenceMet(r *request) bool {
	le, hasLe := number(r, "X-Ms-If-Sequence-Number-Le")
	lt, hasLt := number(r, "X-Ms-If-Sequence-Number-Lt")
	eq, hasEq := number(r, "X-Ms-If-Sequence-Number-Eq")
	return (!hasLe || b.sequence <= le) && (!hasLt || b.sequence < lt) && (!hasEq || b.sequence == eq)
}

// putPage writes or clears pages, under conditions on the sequence number.
func (s *Service) putPage(r *request, b *blobState) *answer {
	if b.kind != "PageBlob" {
		return invalidBlobType()
	}
	if !b.sequenceMet(r) {
		return fail(http.StatusPreconditionFailed, "SequenceNumberConditionNotMet", "The sequence number condition specified was not met.")
	}
	first, last, err := parseRange(rangeOf(r))
	if err != nil || last < first || first%pages.Size != 0 || (last+1)%pages.Size != 0 || last >= b.Pages.Size {
		return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidPageRange", "The page range specified is invalid.")
	}
	switch r.header.Get("X-Ms-Page-Write") {
	case "clear":
		b.Pages.Write(first, last, nil)
	default:
		if last+1-first > maxPageWrite {
			return fail(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")
		}
		if int64(len(r.body)) != last+1-first {
			return fail(http.StatusBadRequest, "InvalidHeaderValue", "The length of the content does not fit the range.")
		}
		b.Pages.Write(first, last, r.body)
	}
	s.touch(b)
	return ok(http.StatusCreated).version(b.etag, b.lastModified).checked(r).
		set("x-ms-blob-sequence-number", strconv.FormatInt(b.sequence, 10))
}

type (
	listedRange struct {
		XMLName xml.Name `xml:"PageRange"`
		pages.Range
	}
	clearedRange struct {
		XMLName xml.Name `xml:"ClearRange"`
		pages.Range
	}
	pageList struct {
		XMLName xml.Name `xml:"PageList"`
		Written []listedRange
		Cleared []clearedRange
	}
)

// pageList is Get Page Ranges: all ranges, or those within a range, or those that have changed since a snapshot.
func (b *blobState) pageList(r *request, previous *blobState) *answer {
	if b.kind != "PageBlob" {
		return invalidBlobType()
	}
	first, last := int64(0), b.Pages.Size-1
	if given := rangeOf(r); given != "" {
		var err error
		if first, last, err = parseRange(given); err != nil || first >= b.Pages.Size {
			return invalidRange(b.Pages.Size)
		}
		if last < 0 {
			last = b.Pages.Size - 1
		}
	}
	written, cleared := b.Pages.Ranges, []pages.Range(nil)
	if previous != nil {
		written, cleared = b.Pages.Since(&previous.Pages)
	}
	list := pageList{}
	for _, one := range pages.Within(written, first, last) {
		list.Written = append(list.Written, listedRange{Range: one})
	}
	for _, one := range pages.Within(cleared, first, last) {
		list.Cleared = append(list.Cleared, clearedRange{Range: one})
	}
	a := xmlAnswer(list)
	return a.version(b.etag, b.lastModified).set("x-ms-blob-content-length", strconv.FormatInt(b.Pages.Size, 10))
}

// resize changes a page blob's size and sequence number.
func (b *blobState) resize(r *request) *answer {
	if b.kind != "PageBlob" {
		return invalidBlobType()
	}
	if size, given := number(r, "X-Ms-Blob-Content-Length"); given {
		if size < 0 || size%pages.Size != 0 || size > pages.Max {
			return invalidHeader("x-ms-blob-content-length", strconv.FormatInt(size, 10))
		}
		b.Pages.Resize(size)
	}
	n, given := number(r, "X-Ms-Blob-Sequence-Number")
	switch action := r.header.Get("X-Ms-Sequence-Number-Action"); action {
	case "":
	case "increment":
		if given {
			return invalidHeader("x-ms-blob-sequence-number", strconv.FormatInt(n, 10))
		}
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
