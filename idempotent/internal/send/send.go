// Package send sends requests that are safe to repeat, with bounds that suit the handling of messages.
package send

import (
	"context"
	"time"

	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// TryTimeout bounds one try of a request.
const TryTimeout = 10 * time.Second

// Resend sends a request that is safe to repeat, and retries transient faults. op is the request's name in the REST
// reference. The error is that of the last response, or the cause of ctx.
func Resend(ctx context.Context, w wire.Wire, op string, tries int, each time.Duration, request func(context.Context) error) error {
	_, err := w.Send(ctx, op, wire.Again{Try: each, Budget: Budget(tries)}, request)
	return err
}

// Budget is so many tries with short waits between them.
func Budget(tries int) retry.Budget {
	return retry.Budget{Attempts: tries, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}}
}

// Page fetches the next page of a list, with as many tries as the SDK would make.
func Page[P any](ctx context.Context, w wire.Wire, op string, next func(context.Context) (P, error)) (page P, err error) {
	err = Resend(ctx, w, op, 4, time.Minute, func(ctx context.Context) (err error) {
		page, err = next(ctx)
		return err
	})
	return page, err
}
