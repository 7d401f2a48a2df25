package scene

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
)

// Request is a request that a client sent, and its response.
type Request struct {
	Method   string            `json:"method"`
	Resource string            `json:"resource"`
	Sent     map[string]string `json:"sent,omitempty"`
	Status   int               `json:"status"` // 0: no response
	Code     string            `json:"error_code,omitempty"`
	Got      map[string]string `json:"got,omitempty"`
	Lost     bool              `json:"response_lost,omitempty"` // on its way, after the service had sent it
	AtMS     float64           `json:"at_ms"`                   // since the beginning of the scene
	TookMS   float64           `json:"took_ms"`
}

// Act is a call by one client.
type Act struct {
	Client   string    `json:"client"`
	Does     string    `json:"does"`
	Library  string    `json:"library"`
	Command  string    `json:"command"`
	Requests []Request `json:"requests"` // the first of them
	More     int       `json:"more_requests,omitempty"`
	Error    string    `json:"error,omitempty"`
	FailedMS float64   `json:"failed_ms,omitempty"` // when the error came
}

// Event is something that happened to a client: an event of the library, or a pause.
type Event struct {
	Client   string  `json:"client"`
	Subject  string  `json:"subject"`
	Kind     string  `json:"kind"`
	Resource string  `json:"resource,omitempty"`
	Fence    int64   `json:"fence,omitempty"`
	AtMS     float64 `json:"at_ms"`
	TookMS   float64 `json:"took_ms,omitempty"`
	Error    string  `json:"error,omitempty"` // what the event says of a failure
}

// The headers that matter to concurrency. Others are not recorded, so neither are signatures.
var (
	sentHeaders = []string{
		"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "x-ms-lease-action", "x-ms-lease-duration", "x-ms-lease-id",
		"x-ms-proposed-lease-id", "x-ms-source-if-match", "x-ms-copy-action", "x-ms-write", "x-ms-page-write",
	}
	gotHeaders = []string{"ETag", "x-ms-lease-id", "x-ms-lease-time", "x-ms-snapshot", "x-ms-copy-status", "x-ms-time-next-visible"}
	secretive  = map[string]string{"x-ms-lease-id": "lease", "x-ms-proposed-lease-id": "lease"}
	shownQuery = []string{"comp", "restype", "blocklisttype", "snapshot", "visibilitytimeout", "popreceipt"}
)

// recorder notes what the clients of one scene do. It is safe for concurrent use.
type recorder struct {
	mu     sync.Mutex
	began  time.Time
	acts   []Act
	events []Event
	names  map[string]string // of lease ids and pop receipts, which are as good as keys while they are valid
	count  map[string]int
}

func newRecorder() *recorder {
	return &recorder{began: time.Now(), names: map[string]string{}, count: map[string]int{}}
}

func (r *recorder) since(t time.Time) float64 { return milliseconds(t.Sub(r.began)) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// name returns a name for a secret: the same for the same one.
func (r *recorder) name(kind, secret string) string {
	secret = strings.ToLower(secret)
	if r.names[secret] == "" {
		r.count[kind]++
		r.names[secret] = fmt.Sprintf("(%s %d)", kind, r.count[kind])
	}
	return r.names[secret]
}

// errLost is what a client gets instead of a response that the demo drops.
var errLost = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("the demo has dropped the response")}

// lane is the policy of one client: it records, and drops a response if it was asked to.
type lane struct {
	r      *recorder
	client string
	prefix string // of paths: the account in the URL of an emulator
	lose   func(write int) bool
	writes int
	lost   int
}

// kept is the number of requests that an act keeps. What a loop repeats after them is counted.
const kept = 24

func (l *lane) Do(req *policy.Request) (*http.Response, error) {
	if l.client == "" {
		return req.Next()
	}
	began := time.Now()
	resp, err := req.Next()
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	raw := req.Raw()
	seen := Request{
		Method: raw.Method, Resource: l.resource(raw.URL), Sent: l.headers(raw.Header, sentHeaders), AtMS: l.r.since(began),
		TookMS: milliseconds(time.Since(began)),
	}
	if err == nil {
		seen.Status, seen.Got = resp.StatusCode, l.headers(resp.Header, gotHeaders)
		seen.Code = code(resp)
		if l.loses(raw.Method) {
			seen.Lost = true
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			resp, err = nil, errLost
		}
	}
	for i := len(l.r.acts) - 1; i >= 0; i-- { // of this client: another may act while this one renews
		if l.r.acts[i].Client == l.client {
			l.r.acts[i].note(seen)
			break
		}
	}
	return resp, err
}

// loses reports whether the response to a request is lost.
func (l *lane) loses(method string) bool {
	if l.lose == nil || method == http.MethodGet || method == http.MethodHead {
		return false
	}
	if l.writes++; !l.lose(l.writes) {
		return false
	}
	l.lost++
	return true
}

func (a *Act) note(r Request) {
	if len(a.Requests) == kept {
		a.More++
		return
	}
	a.Requests = append(a.Requests, r)
}

func (l *lane) headers(h http.Header, names []string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		v := h.Get(name)
		if list := h[name]; v == "" && len(list) > 0 { // the SDK sets some names as they are
			v = list[0]
		}
		if v == "" {
			continue
		}
		if kind := secretive[name]; kind != "" {
			v = l.r.name(kind, v)
		}
		out[name] = v
	}
	return out
}

// resource returns the path in the account, with the parts of the query that say what is asked; never a signature.
func (l *lane) resource(u *url.URL) string {
	path := strings.TrimPrefix(strings.TrimPrefix(u.Path, l.prefix), "/")
	var query []string
	for _, key := range shownQuery {
		if v := u.Query().Get(key); v != "" {
			if key == "popreceipt" {
				v = l.r.name("receipt", v)
			}
			query = append(query, key+"="+v)
		}
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	return path
}

var tableCode = regexp.MustCompile(`"code"\s*:\s*"(\w+)"`)

// code returns the error code of a response. That of a table is in the body, and so is that of an entity group transaction.
func code(resp *http.Response) string {
	if c := resp.Header.Get("x-ms-error-code"); c != "" {
		return c
	}
	if resp.StatusCode < 400 && !strings.HasSuffix(resp.Request.URL.Path, "$batch") {
		return ""
	}
	body, err := runtime.Payload(resp)
	if err != nil {
		return ""
	}
	if m := tableCode.FindSubmatch(body); m != nil {
		return string(m[1])
	}
	return ""
}

// hooks record the library's events.
func (l *lane) hooks() observe.Hooks {
	return observe.Hooks{Event: func(_ context.Context, e observe.Event) {
		l.r.mu.Lock()
		defer l.r.mu.Unlock()
		event := Event{
			Client: l.client, Subject: string(e.Subject), Kind: string(e.Kind), Resource: e.Resource, Fence: int64(e.Fence),
			AtMS: l.r.since(e.At), TookMS: milliseconds(e.Took),
		}
		if e.Err != nil {
			event.Error = text(e.Err)
		}
		l.r.events = append(l.r.events, event)
	}}
}

func text(err error) string { return azerr.Clean(err).Error() }
