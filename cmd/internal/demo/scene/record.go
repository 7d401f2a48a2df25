package scene

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
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
}

// kept is the number of requests that an act keeps. What a loop repeats after them is counted.
const kept = 24

// The headers that matter to concurrency. Others are not recorded, so neither are signatures.
var (
	sentHeaders = []string{
		"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "x-ms-lease-action", "x-ms-lease-duration", "x-ms-lease-id",
		"x-ms-proposed-lease-id", "x-ms-source-if-match", "x-ms-copy-action", "x-ms-write", "x-ms-page-write",
	}
	gotHeaders = []string{"ETag", "x-ms-lease-id", "x-ms-lease-time", "x-ms-snapshot", "x-ms-copy-status", "x-ms-time-next-visible"}
	shownQuery = []string{"comp", "restype", "blocklisttype", "snapshot", "visibilitytimeout", "popreceipt"}
)

// errLost is what a client gets instead of a response that the demo drops.
var errLost = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("the demo has dropped the response")}

// Do records a request, and drops its response if the scene loses it.
func (c *client) Do(req *policy.Request) (*http.Response, error) {
	if c.name == "" {
		return req.Next()
	}
	resp, err := req.Next()
	c.mu.Lock()
	defer c.mu.Unlock()
	raw := req.Raw()
	seen := Request{Method: raw.Method, Resource: c.resource(raw.URL), Sent: c.headers(raw.Header, sentHeaders)}
	if err == nil {
		seen.Status, seen.Code, seen.Got = resp.StatusCode, code(resp), c.headers(resp.Header, gotHeaders)
		if c.loses(raw.Method) {
			seen.Lost = true
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			resp, err = nil, errLost
		}
	}
	for i := range slices.Backward(c.acts) { // the last one of this client: another may act while this one renews
		if a := &c.acts[i]; a.Client == c.name {
			if len(a.Requests) < kept {
				a.Requests = append(a.Requests, seen)
			} else {
				a.More++
			}
			break
		}
	}
	return resp, err
}

// loses reports whether the response to a request is lost.
func (c *client) loses(method string) bool {
	if c.lose == nil || method == http.MethodGet || method == http.MethodHead {
		return false
	}
	if c.writes++; !c.lose(c.writes) {
		return false
	}
	c.lost++
	return true
}

// secret returns a name for a secret: the same for the same one.
func (s *stage) secret(kind, secret string) string {
	secret = strings.ToLower(secret)
	if s.secrets[secret] == "" {
		n := 1
		for _, name := range s.secrets {
			if strings.HasPrefix(name, "("+kind) {
				n++
			}
		}
		s.secrets[secret] = fmt.Sprintf("(%s %d)", kind, n)
	}
	return s.secrets[secret]
}

func (c *client) headers(h http.Header, names []string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		v := h.Get(name)
		if list := h[name]; v == "" && len(list) > 0 { // the SDK sets some names as they are
			v = list[0]
		}
		if v != "" && strings.HasSuffix(name, "lease-id") {
			v = c.secret("lease", v)
		}
		if v != "" {
			out[name] = v
		}
	}
	return out
}

// resource returns the path in the account, with the parts of the query that say what is asked; never a signature.
func (c *client) resource(u *url.URL) string {
	path := strings.TrimPrefix(strings.TrimPrefix(u.Path, c.prefix), "/")
	sep := "?"
	for _, key := range shownQuery {
		v := u.Query().Get(key)
		if v != "" && key == "popreceipt" {
			v = c.secret("receipt", v)
		}
		if v != "" {
			path += sep + key + "=" + v
			sep = "&"
		}
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
	if m := tableCode.FindSubmatch(body); err == nil && m != nil {
		return string(m[1])
	}
	return ""
}
