package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// Harness is a service under the suite.
type Harness struct {
	// Emulator tells that the service is one that is known to differ here and there.
	Emulator bool

	// Container returns a client for a container that exists and is nobody else's. Headers must be among its
	// PerCallPolicies.
	Container func(t *testing.T) *container.Client
}

// said is what a service answers: "ok", or status and code.
type said string

const success said = "ok"

type headersKey struct{}

// Headers is a policy that puts the headers on the wire which the suite asks with and the SDK has no way to send. It works
// before the request is signed.
func Headers() policy.Policy { return headers{} }

type headers struct{}

func (headers) Do(r *policy.Request) (*http.Response, error) {
	if given, ok := r.Raw().Context().Value(headersKey{}).(http.Header); ok {
		maps.Copy(r.Raw().Header, given)
	}
	return r.Next()
}

// call runs one operation with the SDK's retries off and returns what the service said. It also sees what the SDK does
// not report: a GET that is answered 304 is no error to it.
func call(run func(context.Context) error) said { return callWith(nil, run) }

// callWith is call with more headers.
func callWith(h http.Header, run func(context.Context) error) said {
	var raw *http.Response
	ctx := policy.WithCaptureResponse(context.WithValue(context.Background(), headersKey{}, h), &raw)
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	err := run(ctx)
	if refused, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return said(fmt.Sprintf("%d %s", refused.StatusCode, refused.ErrorCode))
	}
	if err != nil {
		return said("error: " + err.Error())
	}
	if raw != nil && raw.StatusCode == http.StatusNotModified {
		return said("304 " + raw.Header.Get("x-ms-error-code"))
	}
	return success
}

// expect is what the service says, and what an emulator says instead, where it differs.
type expect struct {
	service  said
	emulator said // "" when it does not differ
	why      string
}

func (e expect) check(t *testing.T, h Harness, question string, got said) {
	t.Helper()
	want := e.service
	if h.Emulator && e.emulator != "" {
		want = e.emulator
		if got == e.service {
			t.Errorf("%s: the emulator now says %q, as the service does; before it said %q (%s)", question, got, e.emulator, e.why)
			return
		}
	}
	if got != want {
		t.Errorf("%s: %q, want %q", question, got, want)
	}
}
