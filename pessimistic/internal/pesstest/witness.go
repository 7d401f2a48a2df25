package pesstest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/aztest"
)

// Carried is a request that the service has carried out.
type Carried struct {
	At       time.Time
	Op       string // "acquire", "renew", "stamp", "put", "get", …
	Resource string
	Status   int
	Lease    string // the id in the response, or in the request
	Fence    string // in the metadata of the request
	Nonce    string // likewise
	Duration time.Duration
}

// Witness stands between the faults and the service.
type Witness struct {
	next policy.Transporter
	mu   sync.Mutex
	log  []Carried
	each func(Carried) // called without the mutex; may be nil
}

func (w *Witness) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = nil
}

// On calls each with every request that was carried out, before its response is returned.
func (w *Witness) On(each func(Carried)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.each = each
}

// Seen returns the requests that were carried out.
func (w *Witness) Seen() []Carried {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// Header returns a header of a request of the SDK, which writes some names in lower case.
func Header(h http.Header, name string) string {
	for key, values := range h {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// Do implements policy.Transporter.
func (w *Witness) Do(r *http.Request) (*http.Response, error) {
	c := Carried{At: time.Now(), Resource: strings.TrimPrefix(r.URL.Path, "/"+aztest.Account+"/")}
	switch {
	case Header(r.Header, "x-ms-lease-action") != "":
		c.Op = Header(r.Header, "x-ms-lease-action")
	case r.URL.Query().Get("comp") == "metadata":
		c.Op = "stamp"
	case r.Method == http.MethodPut:
		c.Op = "put"
	default:
		c.Op = strings.ToLower(r.Method)
	}
	c.Fence, c.Nonce = Header(r.Header, "x-ms-meta-azconcfence"), Header(r.Header, "x-ms-meta-azconcnonce")
	if seconds, err := strconv.Atoi(Header(r.Header, "x-ms-lease-duration")); err == nil {
		c.Duration = time.Duration(seconds) * time.Second
	}
	resp, err := w.next.Do(r)
	if err != nil {
		return resp, err
	}
	c.Status = resp.StatusCode
	if c.Lease = Header(resp.Header, "x-ms-lease-id"); c.Lease == "" {
		c.Lease = Header(r.Header, "x-ms-lease-id")
	}
	w.mu.Lock()
	w.log = append(w.log, c)
	each := w.each
	w.mu.Unlock()
	if each != nil {
		each(c)
	}
	return resp, nil
}
