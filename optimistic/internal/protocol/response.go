package protocol

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/azerr"
)

// Request counts and sends one of several requests of a try, and checks that the response came from the service. A try
// that consists of a single request does not need it: it calls CountRequest, and the Call checks the response.
func Request[R any](ctx context.Context, send func(context.Context) (R, error)) (R, error) {
	CountRequest(ctx)
	var response *http.Response
	r, err := send(policy.WithCaptureResponse(ctx, &response))
	return r, Genuine(response, err)
}

// Genuine returns err, or an *azerr.ForeignError if the response did not come from the service: such a response proves
// neither success nor failure. An error that the SDK derived from the status of the response is returned unchanged, for
// azerr.Classify.
func Genuine(response *http.Response, err error) error {
	if _, answered := errors.AsType[*azcore.ResponseError](err); answered {
		return err
	}
	if foreign := azerr.FromService(response); foreign != nil {
		return foreign
	}
	return err
}

// Deref returns the value that p points to, or the zero value if p is nil.
func Deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// Optional returns a pointer to v, or nil for the zero value: an option of the SDK that is not set.
func Optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
