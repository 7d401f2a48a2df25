package blobservice

import (
	"cmp"
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

const maxPageWrite = 4 << 20 // the most that one Put Page takes

func (b *blobState) initPages(r *storage.Request) *storage.Answer {
	size, given := number(r, "X-Ms-Blob-Content-Length")
	if !given || size < 0 || size%storage.PageSize != 0 || size > storage.MaxPages {
		return storage.InvalidHeader("x-ms-blob-content-length", r.Header.Get("X-Ms-Blob-Content-Length"))
	}
	if a := negative(r, "X-Ms-Blob-Sequence-Number"); a != nil {
		return a
	}
	b.Pages.Size = size
	b.sequence, _ = number(r, "X-Ms-Blob-Sequence-Number")
	return nil
}

// sequenceMet evaluates the conditions on the sequence number.
func (b *blobState) sequenceMet(r *storage.Request) bool {
	le, hasLe := number(r, "X-Ms-If-Sequence-Number-Le")
	lt, hasLt := number(r, "X-Ms-If-Sequence-Number-Lt")
	eq, hasEq := number(r, "X-Ms-If-Sequence-Number-Eq")
	return (!hasLe || b.sequence <= le) && (!hasLt || b.sequence < lt) && (!hasEq || b.sequence == eq)
}

// putPage writes or clears pages, under conditions on the sequence number.
func (s *Service) putPage(r *storage.Request, b *blobState) *storage.Answer {
	if b.kind != "PageBlob" {
		return invalidBlobType()
	}
	for _, name := range []string{"X-Ms-If-Sequence-Number-Le", "X-Ms-If-Sequence-Number-Lt", "X-Ms-If-Sequence-Number-Eq"} {
		a := negative(r, name)
		if a != nil && r.Header.Get("X-Ms-Copy-Source") == "" {
			return storage.Fail(http.StatusBadRequest, "InvalidInput", "One of the request inputs is not valid.")
		} else if a != nil {
			return a
		}
	}
	if storage.RangeOf(r) == "" {
		return storage.Fail(http.StatusBadRequest, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified.")
	}
	if !b.sequenceMet(r) {
		return storage.Fail(http.StatusPreconditionFailed, "SequenceNumberConditionNotMet", "The sequence number condition specified was not met.")
	}
	first, last, err := storage.ParseRange(storage.RangeOf(r))
	if err == nil && (first%storage.PageSize != 0 || last >= first && (last+1)%storage.PageSize != 0) {
		return storage.InvalidHeader("x-ms-range", storage.RangeOf(r))
	}
	if err != nil || last < first || last >= b.Pages.Size {
		return storage.Fail(http.StatusRequestedRangeNotSatisfiable, "InvalidPageRange", "The page range specified is invalid.")
	}
	body := r.Body
	switch {
	case r.Header.Get("X-Ms-Page-Write") == "clear":
		body = nil
	case last+1-first > maxPageWrite:
		return storage.TooLarge()
	case int64(len(body)) != last+1-first:
		return storage.Fail(http.StatusBadRequest, "InvalidHeaderValue", "The length of the content does not fit the range.")
	}
	b.Pages.Write(first, last, body)
	s.Touch(&b.Versioned)
	return storage.OK(http.StatusCreated).Version(&b.Versioned).Checked(r).
		Set("x-ms-blob-sequence-number", strconv.FormatInt(b.sequence, 10))
}

type (
	listedRange struct {
		XMLName xml.Name // PageRange or ClearRange
		storage.Range
	}
	pageList struct {
		XMLName xml.Name `xml:"PageList"`
		Ranges  []listedRange
	}
)

// pageList is Get Page Ranges: all ranges, or those within a range, or those that have changed since a snapshot.
func (b *blobState) pageList(r *storage.Request, previous *blobState) *storage.Answer {
	if b.kind != "PageBlob" {
		return invalidBlobType()
	}
	first, last, _, bad := storage.Span(storage.RangeOf(r), b.Pages.Size)
	if bad != nil {
		return bad
	}
	first, last = first&^(storage.PageSize-1), last|(storage.PageSize-1) // whole pages
	written, cleared := b.Pages.Ranges, []storage.Range(nil)
	if previous != nil {
		written, cleared = b.Pages.Since(&previous.Pages)
	}
	list := pageList{}
	for _, one := range storage.Within(written, first, last) {
		list.Ranges = append(list.Ranges, listedRange{xml.Name{Local: "PageRange"}, one})
	}
	for _, one := range storage.Within(cleared, first, last) {
		list.Ranges = append(list.Ranges, listedRange{xml.Name{Local: "ClearRange"}, one})
	}
	slices.SortFunc(list.Ranges, func(x, y listedRange) int { return cmp.Compare(x.Start, y.Start) }) // both kinds in one order
	a := storage.XML(list)
	return a.Version(&b.Versioned).Set("x-ms-blob-content-length", strconv.FormatInt(b.Pages.Size, 10))
}

// resize changes a page blob's size and sequence number.
func (b *blobState) resize(r *storage.Request) *storage.Answer {
	if b.kind != "PageBlob" {
		return invalidBlobType()
	}
	if size, given := number(r, "X-Ms-Blob-Content-Length"); given {
		if size < 0 || size%storage.PageSize != 0 || size > storage.MaxPages {
			return storage.InvalidHeader("x-ms-blob-content-length", strconv.FormatInt(size, 10))
		}
		b.Pages.Resize(size)
	}
	n, given := number(r, "X-Ms-Blob-Sequence-Number")
	switch action := r.Header.Get("X-Ms-Sequence-Number-Action"); action {
	case "":
	case "increment":
		if given {
			return storage.InvalidHeader("x-ms-blob-sequence-number", strconv.FormatInt(n, 10))
		}
		b.sequence++
	case "max", "update":
		if !given || n < 0 {
			return storage.InvalidHeader("x-ms-blob-sequence-number", r.Header.Get("X-Ms-Blob-Sequence-Number"))
		}
		if action == "update" || n > b.sequence {
			b.sequence = n
		}
	default:
		return storage.InvalidHeader("x-ms-sequence-number-action", action)
	}
	return nil
}
