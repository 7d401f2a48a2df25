package aztest

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Request is a request as it was sent, and what became of it.
type Request struct {
	Method   string
	Op       string      // the operation's name in the REST reference, such as "Put Blob"
	Resource string      // container/blob
	Query    url.Values  // without a signature
	Header   http.Header // without Authorization
	Status   int         // of the answer that the caller got; 0 when it got none
	Code     string      // its error code
	Fault    FaultKind   // what went wrong on purpose; "" for nothing
	At       time.Time   // when it was sent
}

// request is a request taken apart for the service.
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

// parseRequest reads everything there is to a request. Header names are made canonical, because the SDK writes some in
// lower case straight into the map, which a socket would have normalised.
func parseRequest(hr *http.Request) (*request, error) {
	r := &request{method: hr.Method, host: hr.URL.Host, query: url.Values{}, header: canonical(hr.Header)}
	for name, values := range hr.URL.Query() {
		r.query[strings.ToLower(name)] = values
	}
	path := strings.TrimPrefix(hr.URL.Path, "/")
	r.account, path, _ = strings.Cut(path, "/")
	r.container, r.blob, _ = strings.Cut(path, "/")
	if hr.Body != nil {
		var err error
		if r.body, err = io.ReadAll(hr.Body); err != nil {
			return nil, err
		}
		hr.Body.Close()
	}
	return r, nil
}

func canonical(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		key := http.CanonicalHeaderKey(name)
		out[key] = append(out[key], values...)
	}
	return out
}

// describe is the request as the log shows it.
func describe(hr *http.Request) Request {
	r := Request{Method: hr.Method, Query: url.Values{}, Header: canonical(hr.Header), At: time.Now()}
	r.Header.Del("Authorization")
	for name, values := range hr.URL.Query() {
		if !strings.EqualFold(name, "sig") {
			r.Query[strings.ToLower(name)] = values
		}
	}
	path := strings.TrimPrefix(hr.URL.Path, "/")
	_, r.Resource, _ = strings.Cut(path, "/")
	if isTable(hr) {
		r.Op, r.Resource = tableOperation(hr.Method, r.Resource, r.Query, r.Header)
		return r
	}
	r.Op = operation(hr.Method, r.Resource, r.Query, r.Header)
	return r
}

// operation names a request of the Blob service as the REST reference does.
func operation(method, resource string, q url.Values, h http.Header) string {
	containerName, blobName, _ := strings.Cut(resource, "/")
	comp, on := q.Get("comp"), "Blob"
	switch {
	case containerName == "":
		return map[string]string{"list": "List Containers", "properties": "Blob Service Properties"}[comp]
	case blobName == "":
		on = "Container"
	}
	write := method == http.MethodPut
	switch {
	case comp == "lease":
		action := h.Get("X-Ms-Lease-Action")
		if action == "" {
			action = "?"
		}
		return strings.ToUpper(action[:1]) + action[1:] + " " + on + " Lease"
	case comp == "list":
		return "List Blobs"
	case comp == "metadata":
		return verb(write) + on + " Metadata"
	case comp == "acl":
		return verb(write) + "Container ACL"
	case comp == "properties":
		return "Set Blob Properties"
	case comp == "tags":
		return verb(write) + "Blob Tags"
	case comp == "tier":
		return "Set Blob Tier"
	case comp == "block":
		return "Put Block"
	case comp == "blocklist" && write:
		return "Put Block List"
	case comp == "blocklist":
		return "Get Block List"
	case comp == "snapshot":
		return "Snapshot Blob"
	case comp == "copy":
		return "Abort Copy Blob"
	case comp == "appendblock":
		return "Append Block"
	case comp == "page" && write:
		return "Put Page"
	case comp == "pagelist":
		return "Get Page Ranges"
	case comp == "seal":
		return "Append Blob Seal"
	case comp != "":
		return method + " " + comp
	case write && h.Get("X-Ms-Copy-Source") != "":
		return "Copy Blob"
	case on == "Container" && write:
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

// String is the request in one line: "Put Blob box/state.json: 412 ConditionNotMet".
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
