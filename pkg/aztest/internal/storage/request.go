package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Request is a parsed request.
type Request struct {
	Method    string
	Host      string
	Account   string
	Container string
	Blob      string
	Query     url.Values
	Header    http.Header
	Body      []byte
	Secondary bool // it is sent to the read-only secondary location

	// Permit refuses an operation inside the request that its credential does not permit. Nil permits all of them.
	Permit func(operation *Request) *Answer
}

// ParseRequest parses a request. It makes header names canonical, because the SDK puts some in lower case into the map,
// where a socket would have normalized them.
func ParseRequest(hr *http.Request) (*Request, error) {
	r := &Request{Method: hr.Method, Host: hr.URL.Host, Query: url.Values{}, Header: Canonical(hr.Header)}
	for name, values := range hr.URL.Query() {
		r.Query[strings.ToLower(name)] = values
	}
	path := strings.TrimPrefix(hr.URL.Path, "/")
	r.Account, path, _ = strings.Cut(path, "/")
	r.Container, r.Blob, _ = strings.Cut(path, "/")
	var err error
	r.Body, err = BodyOf(hr)
	return r, err
}

// payload is the body of a request that has been read. It is never written again: the service keeps it as content, and
// responses share it.
type payload struct {
	*bytes.Reader
	data []byte
}

// NewPayload returns a body that BodyOf reads without copying it.
func NewPayload(data []byte) io.ReadCloser { return payload{bytes.NewReader(data), data} }

func (payload) Close() error { return nil }

// BodyOf reads a request's body to its end and closes it, as a connection does.
func BodyOf(hr *http.Request) ([]byte, error) {
	if hr.Body == nil || hr.Body == http.NoBody {
		return nil, nil
	}
	if p, ok := hr.Body.(payload); ok {
		return p.data, nil
	}
	defer hr.Body.Close()
	if hr.ContentLength <= 0 || hr.ContentLength > 4<<30 {
		return io.ReadAll(hr.Body)
	}
	data := make([]byte, hr.ContentLength) // allocated at its final size: content is held once
	if n, err := io.ReadFull(hr.Body, data); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("http: ContentLength=%d with Body length %d", hr.ContentLength, n) // as net/http reports it
	} else if err != nil {
		return nil, err
	}
	if n, _ := io.CopyN(io.Discard, hr.Body, 1); n != 0 {
		return nil, fmt.Errorf("http: request body larger than ContentLength=%d", hr.ContentLength)
	}
	return data, nil
}

// Canonical returns a copy of h with canonical names: the SDK puts some in lower case into the map.
func Canonical(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		key := http.CanonicalHeaderKey(name)
		out[key] = append(out[key], values...)
	}
	return out
}

// Verb begins the name of an operation that sets or gets.
func Verb(write bool) string {
	if write {
		return "Set "
	}
	return "Get "
}

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }

// Verbs has the verbs of the operations on a resource, by the value of comp. Names of operations, and so the permissions that they need,
// come from comp where there is one: an operation that was carried out by another verb would need the permissions of another one.
type Verbs map[string]string

// Refuse returns the answer to a request whose verb its operation does not have, or nil.
func (v Verbs) Refuse(r *Request) *Answer {
	verbs, known := v[r.Query.Get("comp")]
	switch {
	case !known:
		return NotImplemented()
	case !slices.Contains(strings.Fields(verbs), r.Method):
		return UnsupportedVerb()
	}
	return nil
}

// UnsupportedVerb is the answer to a verb that a resource does not have.
func UnsupportedVerb() *Answer {
	return Fail(http.StatusMethodNotAllowed, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.")
}
