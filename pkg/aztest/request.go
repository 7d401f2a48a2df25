package aztest

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/blobservice"
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

// Describe returns the entry in the log of a request that has not been sent. It does not read the body.
func Describe(hr *http.Request) Request {
	r := Request{Method: hr.Method, Query: url.Values{}, Header: storage.Canonical(hr.Header), At: time.Now()}
	for name := range r.Header {
		switch {
		case strings.HasSuffix(name, "Authorization"), strings.HasSuffix(name, "Encryption-Key"):
			r.Header.Del(name)
		case strings.HasSuffix(name, "-Source"):
			r.Header.Set(name, withoutSignature(r.Header.Get(name)))
		}
	}
	for name, values := range hr.URL.Query() {
		if !strings.EqualFold(name, "sig") {
			r.Query[strings.ToLower(name)] = values
		}
	}
	r.Resource = strings.TrimPrefix(hr.URL.Path, "/")
	if realService(hr.URL.Hostname()) == "" {
		_, r.Resource, _ = strings.Cut(r.Resource, "/") // the account
	}
	if service := serviceAt(hr); service == storage.Table {
		r.Op, r.Resource = tableservice.Operation(hr.Method, r.Resource, r.Query, r.Header)
	} else {
		r.Op = storage.Describe(service, hr.Method, r.Resource, r.Query, r.Header)
	}
	return r
}

// hosts has the services by the hosts of requests to a Service.
var hosts = map[string]string{
	blobservice.Host: storage.Blob, tableservice.Host: storage.Table, queueservice.Host: storage.Queue, fileservice.Host: storage.File,
}

// serviceAt returns the service that a request is for. Behind a Proxy, where all have one host, only clients of the Table service send some
// headers, and only the Queue service has messages.
func serviceAt(hr *http.Request) string {
	service := cmp.Or(hosts[hr.URL.Host], realService(hr.URL.Hostname()))
	header := func(name string) string { return storage.Canonical(hr.Header).Get(name) }
	switch {
	case service != "":
		return service
	case header("DataServiceVersion") != "", strings.HasPrefix(header("Accept"), "application/json"):
		return storage.Table
	case strings.HasSuffix(hr.URL.Path, "/messages"), strings.Contains(hr.URL.Path, "/messages/"):
		return storage.Queue
	}
	return storage.Blob
}

// realService returns the service of a host name such as "acct.blob.core.windows.net" or "acct.z01.blob.storage.azure.net", or "" for a
// server that has the account in the path. An Injector may be in front of either.
func realService(host string) string {
	for _, word := range strings.Split(host, ".")[1:] {
		if slices.Contains([]string{storage.Blob, storage.Table, storage.Queue, storage.File}, word) {
			return word
		}
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
