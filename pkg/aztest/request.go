package aztest

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/fileservice"
	"github.com/azconc/azconc/pkg/aztest/internal/queueservice"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
	"github.com/azconc/azconc/pkg/aztest/internal/tableservice"
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

// Describe returns the Service.Log entry of a request that has not been sent. It does not read the body.
func Describe(r *http.Request) Request { return describe(r) }

// describe returns the request's entry in the log.
func describe(hr *http.Request) Request {
	r := Request{Method: hr.Method, Query: url.Values{}, Header: storage.Canonical(hr.Header), At: time.Now()}
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
	case service == "table", service == "" && tableservice.IsTable(hr):
		r.Op, r.Resource = tableservice.Operation(hr.Method, r.Resource, r.Query, r.Header)
	case service == "queue", service == "" && queueservice.IsQueue(hr):
		r.Op = queueservice.Operation(hr.Method, r.Resource, r.Query)
	case service == "file", service == "" && fileservice.IsFile(hr):
		r.Op = fileservice.Operation(hr.Method, r.Resource, r.Query, r.Header)
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
	case comp == "batch":
		return "Blob Batch"
	case comp == "blobs" && blobName == "":
		return "Find Blobs by Tags"
	case containerName == "" && comp == "list":
		return "List Containers"
	case containerName == "" && comp == "stats":
		return "Get Blob Service Stats"
	case q.Get("restype") == "account":
		return "Get Account Information"
	case containerName == "":
		return storage.Verb(write) + "Blob Service Properties"
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
		return storage.Verb(write) + on + " " + strings.ToUpper(comp[:1]) + comp[1:]
	case "acl":
		return storage.Verb(write) + "Container ACL"
	case "tags":
		return storage.Verb(write) + "Blob Tags"
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
	case "undelete":
		return "Undelete Blob"
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
