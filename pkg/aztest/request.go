package aztest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Request is a request as it was sent, with its result.
type Request struct {
	Method   string
	Op       string      // the operation's name in the REST reference, such as "Put Blob"
	Resource string      // container/blob
	Query    url.Values  // without a signature
	Header   http.Header // without credentials
	Status   int         // of the response that the caller got; 0 if it got none
	Code     string      // its error code
	Fault    FaultKind   // what went wrong on purpose; "" for nothing
	At       time.Time   // when it was sent
}

// request is a parsed request.
type request struct {
	method    string
	host      string
	account   string
	container string
	blob      string
	query     url.Values
	header    http.Header
	body      []byte
}

// parseRequest parses a request. It makes header names canonical, because the SDK puts some in lower case into the map,
// where a socket would have normalized them.
func parseRequest(hr *http.Request) (*request, error) {
	r := &request{method: hr.Method, host: hr.URL.Host, query: url.Values{}, header: canonical(hr.Header)}
	for name, values := range hr.URL.Query() {
		r.query[strings.ToLower(name)] = values
	}
	path := strings.TrimPrefix(hr.URL.Path, "/")
	r.account, path, _ = strings.Cut(path, "/")
	r.container, r.blob, _ = strings.Cut(path, "/")
	var err error
	r.body, err = bodyOf(hr)
	return r, err
}

// payload is the body of a request that has been read. It is never written again: the service keeps it as content, and
// responses share it.
type payload struct {
	*bytes.Reader
	data []byte
}

func newPayload(data []byte) payload { return payload{bytes.NewReader(data), data} }

func (payload) Close() error { return nil }

// bodyOf reads a request's body to its end and closes it, as a connection does.
func bodyOf(hr *http.Request) ([]byte, error) {
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

func canonical(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		key := http.CanonicalHeaderKey(name)
		out[key] = append(out[key], values...)
	}
	return out
}

// Describe returns the Service.Log entry of a request that has not been sent. It does not read the body.
func Describe(r *http.Request) Request { return describe(r) }

// describe returns the request's entry in the log.
func describe(hr *http.Request) Request {
	r := Request{Method: hr.Method, Query: url.Values{}, Header: canonical(hr.Header), At: time.Now()}
	for _, secret := range []string{"Authorization", "X-Ms-Copy-Source-Authorization", "X-Ms-Encryption-Key"} {
		r.Header.Del(secret)
	}
	if source := r.Header.Get("X-Ms-Copy-Source"); source != "" {
		r.Header.Set("X-Ms-Copy-Source", withoutSignature(source))
	}
	for name, values := range hr.URL.Query() {
		if !strings.EqualFold(name, "sig") {
			r.Query[strings.ToLower(name)] = values
		}
	}
	r.Resource = strings.TrimPrefix(hr.URL.Path, "/")
	service := realService(hr.URL.Hostname())
	if service == "" {
		_, r.Resource, _ = strings.Cut(r.Resource, "/") // the account
	}
	switch {
	case service == "table", service == "" && isTable(hr):
		r.Op, r.Resource = tableOperation(hr.Method, r.Resource, r.Query, r.Header)
	case service == "queue", service == "" && isQueue(hr):
		r.Op = queueOperation(hr.Method, r.Resource, r.Query)
	case service == "file", service == "" && isFile(hr):
		r.Op = fileOperation(hr.Method, r.Resource, r.Query, r.Header)
	default:
		r.Op = operation(hr.Method, r.Resource, r.Query, r.Header)
	}
	return r
}

// realService returns the service of a host name such as "acct.blob.core.windows.net", or "" for a server that has the
// account in the path. An Injector may be in front of either.
func realService(host string) string {
	if words := strings.Split(host, "."); len(words) > 2 && slices.Contains([]string{"blob", "table", "queue", "file"}, words[1]) {
		return words[1]
	}
	return ""
}

func withoutSignature(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Del("sig")
	u.RawQuery = q.Encode()
	return u.String()
}

// operation names a request of the Blob service as the REST reference does.
func operation(method, resource string, q url.Values, h http.Header) string {
	containerName, blobName, _ := strings.Cut(resource, "/")
	comp, on, write := q.Get("comp"), "Blob", method == http.MethodPut
	switch {
	case containerName == "" && comp == "list":
		return "List Containers"
	case q.Get("restype") == "account":
		return "Get Account Information"
	case containerName == "":
		return verb(write) + "Blob Service Properties"
	case blobName == "":
		on = "Container"
	}
	fromURL := ""
	if h.Get("X-Ms-Copy-Source") != "" {
		fromURL = " From URL"
	}
	switch comp {
	case "":
		return plainOperation(method, on, fromURL != "", h)
	case "lease":
		action := h.Get("X-Ms-Lease-Action")
		if action == "" {
			action = "?"
		}
		return strings.ToUpper(action[:1]) + action[1:] + " " + on + " Lease"
	case "list":
		return "List Blobs"
	case "metadata", "properties":
		return verb(write) + on + " " + strings.ToUpper(comp[:1]) + comp[1:]
	case "acl":
		return verb(write) + "Container ACL"
	case "tags":
		return verb(write) + "Blob Tags"
	case "tier":
		return "Set Blob Tier"
	case "block":
		return "Put Block" + fromURL
	case "blocklist":
		if write {
			return "Put Block List"
		}
		return "Get Block List"
	case "snapshot":
		return "Snapshot Blob"
	case "copy":
		return "Abort Copy Blob"
	case "appendblock":
		return "Append Block" + fromURL
	case "page":
		return "Put Page" + fromURL
	case "pagelist":
		return "Get Page Ranges"
	case "seal":
		return "Append Blob Seal"
	}
	return method + " " + comp
}

// plainOperation names a request without a comp parameter.
func plainOperation(method, on string, fromURL bool, h http.Header) string {
	write := method == http.MethodPut
	switch {
	case write && fromURL && h.Get("X-Ms-Blob-Type") != "":
		return "Put Blob From URL"
	case write && fromURL && h.Get("X-Ms-Requires-Sync") == "true":
		return "Copy Blob From URL"
	case write && fromURL:
		return "Copy Blob"
	case write && on == "Container":
		return "Create Container"
	case write:
		return "Put Blob"
	case method == http.MethodDelete:
		return "Delete " + on
	case method == http.MethodHead, on == "Container":
		return "Get " + on + " Properties"
	}
	return "Get Blob"
}

func verb(write bool) string {
	if write {
		return "Set "
	}
	return "Get "
}

// String returns the request in one line: "Put Blob box/state.json: 412 ConditionNotMet".
func (r Request) String() string {
	words := []string{r.Op, r.Resource + ":"}
	if r.Status != 0 {
		words = append(words, strconv.Itoa(r.Status))
	}
	if r.Code != "" {
		words = append(words, r.Code)
	}
	if r.Fault != "" {
		words = append(words, "["+string(r.Fault)+"]")
	}
	return strings.Join(words, " ")
}

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }
