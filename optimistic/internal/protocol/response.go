package protocol

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/azerr"
)

// Request counts and sends one of several requests of a try, and checks that the response came from the service. If a
// try is a single request, its call does the same.
func Request[R any](ctx context.Context, send func(context.Context) (R, error)) (R, error) {
	CountRequest(ctx)
	var response *http.Response
	r, err := send(policy.WithCaptureResponse(ctx, &response))
	return r, Genuine(response, err)
}

// Genuine returns err, or a *azerr.ForeignError if the response did not come from the service: such a response proves
// neither success nor failure. An error that the SDK derived from the response's status is left to azerr.Classify.
func Genuine(response *http.Response, err error) error {
	if _, answered := errors.AsType[*azcore.ResponseError](err); answered {
		return err
	}
	if foreign := azerr.FromService(response); foreign != nil {
		return foreign
	}
	return err
}
