package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

// request is what a rule sends: to a resource below a container, a share or the account of tables, "" for that itself.
type request struct {
	method, resource, query string
	header                  http.Header
	body                    string
}

// answer is the response to it.
type answer struct {
	said   said
	header http.Header
	body   string
}

type requestKey struct{}

// requestsOfRules is a policy that sends the requests of the rules in place of a client's own. It stands among PerCallPolicies, so
// that the client signs them with whatever credential it has. The client's other requests pass unchanged.
type requestsOfRules struct{}

func (requestsOfRules) Do(r *policy.Request) (*http.Response, error) {
	given, ok := r.Raw().Context().Value(requestKey{}).(request)
	if !ok {
		return r.Next()
	}
	raw := r.Raw()
	raw.Method = given.method
	if raw.URL.Path == "" {
		raw.URL.Path = "/" // that of an account's tables; JoinPath would make a relative path of it
	}
	if given.resource != "" {
		raw.URL = raw.URL.JoinPath(given.resource)
	}
	query := []string{strings.ReplaceAll(given.query, " ", "%20")}
	for pair := range strings.SplitSeq(raw.URL.RawQuery, "&") { // what remains is a SAS
		if name, _, _ := strings.Cut(pair, "="); name != "restype" && name != "comp" && name != "timeout" {
			query = append(query, pair)
		}
	}
	raw.URL.RawQuery = strings.Trim(strings.Join(query, "&"), "&")
	version := raw.Header["x-ms-version"] // as the SDK spells it
	raw.Header = given.header.Clone()
	raw.Header["x-ms-version"] = version
	if given.body != "" {
		kind := given.header.Get("Content-Type")
		if kind == "" {
			kind = "application/octet-stream"
		}
		if err := r.SetBody(streaming.NopCloser(strings.NewReader(given.body)), kind); err != nil {
			return nil, err
		}
	}
	return r.Next()
}

// carried sends one request.
func (w *world) carried(t *testing.T, r request) answer {
	t.Helper()
	if w.table != "" && r.header["Accept"] == nil {
		r.header["Accept"] = []string{"application/json;odata=minimalmetadata"}
	}
	var raw *http.Response
	ctx := policy.WithCaptureResponse(context.WithValue(t.Context(), requestKey{}, r), &raw)
	got := respondTo(ctx, w.carry)
	w.h.skipIfOver(t)
	if raw == nil {
		return answer{said: got}
	}
	if raw.StatusCode < 300 {
		got = success // the client expected another request's status
	}
	body, err := runtime.Payload(raw)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return answer{got, raw.Header, string(body)}
}

// parseRequest reads "METHOD resource?query | Header: value | body: text".
func parseRequest(text string) (request, error) {
	parts := strings.Split(text, " | ")
	method, target, ok := strings.Cut(strings.TrimSpace(parts[0]), " ")
	if !ok {
		return request{}, fmt.Errorf("no request: %q", text)
	}
	r := request{method: method, header: http.Header{}}
	r.resource, r.query, _ = strings.Cut(target, "?")
	var err error
	if r.resource, err = url.PathUnescape(r.resource); err != nil {
		return r, err
	}
	for _, part := range parts[1:] {
		name, value, ok := strings.Cut(part, ": ")
		switch {
		case !ok:
			return r, fmt.Errorf("no header: %q", part)
		case name == "body":
			r.body = value
		case value != "-" && value != "": // which stand for none
			r.header[name] = []string{value} // as it is written: the SDK signs Content-MD5, not Content-Md5
		}
	}
	return r, nil
}
