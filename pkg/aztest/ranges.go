package aztest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// rangeOf is the range that a request names; x-ms-range wins over Range.
func rangeOf(r *request) string {
	if header := r.header.Get("X-Ms-Range"); header != "" {
		return header
	}
	return r.header.Get("Range")
}

// parseRange reads "bytes=first-last" or "bytes=first-", whose last is -1.
func parseRange(header string) (first, last int64, err error) {
	from, to, ok := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	if first, err = strconv.ParseInt(from, 10, 64); err != nil || !ok || first < 0 {
		return 0, 0, fmt.Errorf("malformed range %q", header)
	}
	if to == "" {
		return first, -1, nil
	}
	if last, err = strconv.ParseInt(to, 10, 64); err != nil || last < first {
		return 0, 0, fmt.Errorf("malformed range %q", header)
	}
	return first, last, nil
}

func invalidRange(size int64) *answer {
	return fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The range specified is invalid for the current size of the resource.").
		set("Content-Range", fmt.Sprintf("bytes */%d", size))
}

// getBlob answers with the content, or a range of it.
func getBlob(r *request, b *blobState) *answer {
	if b.tier == archive {
		return fail(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob.")
	}
	a := ok(http.StatusOK).properties(b, false)
	header := rangeOf(r)
	if header == "" {
		a.body = b.read(0, b.length()-1)
		return a
	}
	first, last, err := parseRange(header)
	if err != nil || first >= b.length() {
		return invalidRange(b.length())
	}
	if last < 0 || last >= b.length() {
		last = b.length() - 1
	}
	a.status = http.StatusPartialContent
	a.set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, b.length()))
	// Content-MD5 is of what is sent; of the whole blob it stands in a header of its own.
	a.set("x-ms-blob-content-md5", a.header.Get("Content-Md5"))
	a.header.Del("Content-Md5")
	a.body = b.read(first, last)
	return rangeSums(r, a)
}

// length is the size of the content.
func (b *blobState) length() int64 {
	if b.kind == "PageBlob" {
		return b.Pages.Size
	}
	return int64(len(b.content))
}

// read returns a range of the content, both ends included. Nobody may write to it.
func (b *blobState) read(first, last int64) []byte {
	if b.kind == "PageBlob" {
		return b.Pages.Read(first, last)
	}
	return b.content[first : last+1]
}
