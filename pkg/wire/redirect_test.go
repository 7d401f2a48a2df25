package wire_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/wire"
)

// TestARedirectedResponseIsNoAnswer: net/http follows 301 and 302 with a GET, so that a write that never happened succeeded, and tells
// the whole URL, shared access signature included, to the other host. The client is one that a program brings: it follows.
func TestARedirectedResponseIsNoAnswer(t *testing.T) {
	var mu sync.Mutex
	var told []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		told = append(told, r.Method+" "+r.Referer())
		mu.Unlock()
		if status := r.URL.Query().Get("status"); status == "404" {
			w.Header().Set("x-ms-error-code", "BlobNotFound")
			defer w.WriteHeader(404)
		}
		w.Header().Set("x-ms-request-id", "of another request")
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, then := range []string{"200", "404"} {
			between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL+"/login?status="+then, status)
			}))
			client := between.Client()
			for name, send := range map[string]func(context.Context, func(context.Context) error) error{
				"by wire": func(ctx context.Context, send func(context.Context) error) error {
					return wire.Wire{}.Once(ctx, "write", 0, send)
				},
				"by the policy": func(ctx context.Context, send func(context.Context) error) error { return send(ctx) },
			} {
				var policies []policy.Policy
				if name == "by the policy" {
					policies = append(policies, azerr.Policy{})
				}
				pipeline := runtime.NewPipeline("test", "v0", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: client, PerRetryPolicies: policies})
				own := policy.WithHTTPHeader(t.Context(), http.Header{"X-Own": {"kept"}})
				err := send(own, func(ctx context.Context) error {
					req, err := runtime.NewRequest(ctx, http.MethodPut, between.URL+"/box/b?sv=1&sig=secret")
					if err != nil {
						return err
					}
					resp, err := pipeline.Do(req)
					if err == nil && resp.StatusCode >= 300 {
						err = runtime.NewResponseError(resp)
					}
					if resp != nil && resp.Request.Response.Request.Header.Get("X-Own") != "kept" {
						t.Error("the caller's own header is lost")
					}
					return err
				})
				if o := azerr.Classify(err); o.Kind != azerr.Unknown || !o.Ambiguous() {
					t.Errorf("%d and %s, %s: %v is %v, want unknown", status, then, name, err, o.Kind)
				}
				if foreign, ok := errors.AsType[*azerr.ForeignError](err); then == "200" && (!ok || "http://"+foreign.Redirect != elsewhere.URL || "http://"+foreign.Host != between.URL) {
					t.Errorf("%d, %s: %#v, want both hosts named", status, name, foreign)
				}
				if text := azerr.Summary(err); strings.Contains(text, "secret") {
					t.Errorf("%d, %s: %s", status, name, text)
				}
			}
			between.Close()
			client.CloseIdleConnections()
		}
	}
	for _, one := range told {
		if strings.Contains(one, "secret") {
			t.Errorf("the other host was told %q", one)
		}
	}
	if len(told) < 20 {
		t.Errorf("%d requests were redirected, want 20", len(told))
	}
}
