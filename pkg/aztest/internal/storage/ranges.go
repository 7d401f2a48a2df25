package storage

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// RangeOf returns the range that a request names; x-ms-range takes precedence over Range.
func RangeOf(r *Request) string {
	if header := r.Header.Get("X-Ms-Range"); header != "" {
		return header
	}
	return r.Header.Get("Range")
}

// ParseRange parses "bytes=first-last" or "bytes=first-", whose last is -1.
func ParseRange(header string) (first, last int64, err error) {
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

// InvalidRange is the response to a range that begins behind the end.
func InvalidRange(size int64) *Answer {
	return Fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The range specified is invalid for the current size of the resource.").
		Set("Content-Range", fmt.Sprintf("bytes */%d", size))
}

// Span returns the part of a resource of a size that a range names, both ends included. It is whole if there is no range, or one that
// cannot be read.
func Span(header string, size int64) (first, last int64, whole bool, bad *Answer) {
	first, last, err := ParseRange(header)
	switch {
	case err != nil:
		return 0, size - 1, true, nil
	case first >= size:
		return 0, 0, false, InvalidRange(size)
	case last < 0 || last >= size:
		last = size - 1
	}
	return first, last, false, nil
}

// Checked returns the sums that checkBody verified. The service also computes sums without being asked; here that would
// be wasted work.
func (a *Answer) Checked(r *Request) *Answer {
	return a.Set("Content-MD5", r.Header.Get("Content-Md5")).Set("x-ms-content-crc64", r.Header.Get("X-Ms-Content-Crc64"))
}

// Page returns the page of sorted names that a request asks for, and the name that begins the next one.
func Page(r *Request, names []string, from string) (page []string, next string, bad *Answer) {
	size, bad := MaxResults(r)
	at, _ := slices.BinarySearch(names, from)
	if names = names[at:]; len(names) > size {
		return names[:size], names[size], bad
	}
	return names, "", bad
}

// MaxResults returns how long the page of a list may be (REST: "List Blobs", maxresults).
func MaxResults(r *Request) (int, *Answer) {
	const most = 5000
	text := r.Query.Get("maxresults")
	if text == "" {
		return most, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return most, OutOfRange("maxresults", text)
	}
	return min(n, most), nil
}

// BadMarker is the response to a marker that no list has given.
func BadMarker() *Answer {
	return Fail(http.StatusBadRequest, "OutOfRangeInput", "One of the request inputs is out of range.")
}

// OutOfRange is the response to a query parameter beyond its limits.
func OutOfRange(name, value string) *Answer {
	return Fail(http.StatusBadRequest, "OutOfRangeQueryParameterValue",
		fmt.Sprintf("One of the query parameters specified in the request URI is outside the permissible range: %s=%q.", name, value))
}
