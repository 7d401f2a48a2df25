package protocol

import (
	"context"

	"github.com/azconc/azconc/pkg/wire"
)

// Request counts and sends one of several requests of a try, and checks that the response came from the service. A try
// that consists of a single request does not need it: it calls CountRequest, and the Call checks the response.
func Request[R any](ctx context.Context, send func(context.Context) (R, error)) (r R, err error) {
	CountRequest(ctx)
	err = wire.Wire{}.Once(ctx, "", 0, func(ctx context.Context) (err error) {
		r, err = send(ctx)
		return err
	})
	return r, err
}
