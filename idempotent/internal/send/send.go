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

// Resend sends a request that is safe to repeat, and retries transient faults. The error is that of the last response,
// or the cause of ctx.
func Resend(ctx context.Context, tries int, each time.Duration, request func(context.Context) error) error {
	budget := retry.Budget{Attempts: tries, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}}
	_, err := wire.Wire{}.Send(ctx, "", wire.Again{Try: each, Budget: budget}, request)
	return err
}

// Once sends a request once.
func Once(ctx context.Context, request func(context.Context) error) error {
	return wire.Wire{}.Once(ctx, "", 0, request)
}
