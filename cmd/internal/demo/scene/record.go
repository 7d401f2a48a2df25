package scene

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// Request is a request that a client sent, and its response, each with the headers that matter to concurrency.
type Request struct {
	Sent string `json:"sent"` // "PUT box/page.txt  If-Match: …"
	Got  string `json:"got"`  // "412 ConditionNotMet", "201, lost on its way  ETag: …", or "no response"
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
	shownQuery = []string{"comp", "restype", "blocklisttype", "snapshot", "visibilitytimeout"}
)

// errLost is what a client gets instead of a response that the demo drops.
var errLost = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("the demo has dropped the response")}

// Do records a request, and drops its response if the scene loses it.
func (c *client) Do(req *policy.Request) (*http.Response, error) {
	if c.name == "" {
		return req.Next()
	}
	raw := req.Raw()
	seen := Request{raw.Method + " " + c.resource(raw.URL) + headers(raw.Header, sentHeaders), "no response"}
	resp, err := req.Next()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		seen.Got = fmt.Sprint(resp.StatusCode)
		if refused, ok := errors.AsType[*azcore.ResponseError](runtime.NewResponseError(resp)); ok && resp.StatusCode >= http.StatusBadRequest {
			seen.Got += " " + refused.ErrorCode
		}
		shown := headers(resp.Header, gotHeaders)
		if c.loses(raw.Method) {
			seen.Got += ", lost on its way"
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			resp, err = nil, errLost
		}
		seen.Got += shown
	}
	if len(c.act.Requests) < kept {
		c.act.Requests = append(c.act.Requests, seen)
	} else {
		c.act.More++
	}
	return resp, err
}

// loses reports whether the response to a request is lost.
func (c *client) loses(method string) bool {
	if c.lose == 0 || method == http.MethodGet || method == http.MethodHead {
		return false
	}
	if c.writes++; c.writes%c.lose != 0 {
		return false
	}
	c.lost++
	return true
}

// headers lists those of h that have one of the names.
func headers(h http.Header, names []string) (list string) {
	for _, name := range names {
		for _, values := range [][]string{h.Values(name), h[name]} { // the SDK sets some names as they are
			if len(values) > 0 {
				list += "  " + name + ": " + values[0]
				break
			}
		}
	}
	return list
}

// resource returns the path in the account, with the parts of the query that say what is asked; never a signature.
func (c *client) resource(u *url.URL) string {
	path := strings.TrimPrefix(strings.TrimPrefix(u.Path, c.prefix), "/")
	sep := "?"
	for _, key := range shownQuery {
		if v := u.Query().Get(key); v != "" {
			path += sep + key + "=" + v
			sep = "&"
		}
	}
	return path
}
