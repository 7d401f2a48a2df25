package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

// Reads reports whether a request only reads.
func (r *Request) Reads() bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
