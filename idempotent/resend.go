package idempotent

import (
	"context"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// resend sends a request that is safe to repeat, and retries transient faults. The error is that of the last response,
// or the cause of ctx.
func resend(ctx context.Context, tries int, each time.Duration, request func(context.Context) error) error {
	again := retry.Budget{Attempts: tries, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second}}.Start()
	for {
		tried, cancel := context.WithTimeout(plain(ctx), each)
		err := request(tried)
		cancel()
		out := azerr.Classify(err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !out.Transient() && !out.Ambiguous() || again.Next(ctx, out.RetryAfter) != nil:
			return err
		}
	}
}
