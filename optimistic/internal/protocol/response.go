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
