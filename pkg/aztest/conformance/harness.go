package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

// Harness is the account under test. A section needs only the field of its service.
type Harness struct {
	// Emulator marks a service with known differences.
	Emulator bool

	// Container returns a client for an existing container that no other test uses. Headers must be among its
	// PerCallPolicies.
	Container func(t T) *container.Client

	// Sign returns a URL with which anybody can read a blob. Defaults to the SDK's GetSASURL, which needs a shared key.
	Sign func(t T, b *blockblob.Client) string

	// Tables returns a client for an account whose tables no other test uses, and the name of an existing, empty table
	// in it.
	Tables func(t T) (service *aztables.ServiceClient, table string)

	// Queue returns a client for an existing queue that no other test uses.
	Queue func(t T) *azqueue.QueueClient

	// Share returns a client for an existing share that no other test uses.
	Share func(t T) *share.Client
}

// said is a response: "ok", or status and code.
type said string

const success said = "ok"

type headersKey struct{}

// Headers is a policy that adds the headers which the suite needs and the SDK cannot send. It runs before the request
// is signed.
func Headers() policy.Policy { return headers{} }

type headers struct{}

func (headers) Do(r *policy.Request) (*http.Response, error) {
	if given, ok := r.Raw().Context().Value(headersKey{}).(http.Header); ok {
		maps.Copy(r.Raw().Header, given)
	}
	return r.Next()
}

// call runs one operation with the SDK's retries off and returns the response. It also detects a GET with the response
// 304, which the SDK does not report as an error.
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

// expect is the service's response, and an emulator's response where it differs.
type expect struct {
	service  said
	emulator said // "" when it does not differ
	why      string
}

func (e expect) check(t T, h Harness, question string, got said) {
	t.Helper()
	a := Answer{Question: question, Expected: string(e.service), Answered: string(got)}
	if h.Emulator && e.emulator != "" {
		a.Expected, a.Known = string(e.emulator), e.why
		if got == e.service {
			a.Known = "it answers as the service does now; before, " + e.why
		}
	}
	t.Answered(a)
}
