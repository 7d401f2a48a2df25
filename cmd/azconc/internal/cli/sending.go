package cli

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// Sent is the result of a write that the command sends itself, without the optimistic package.
type Sent struct {
	Ambiguous int       // responses that left open whether it was carried out
	First     time.Time // when the first request left
}

// SendWrite sends one write with the SDK's retries off, and sends it again while the error is transient. It returns the
// service's last response untouched: after an ambiguous one, a refusal may be the effect of our own write, and the caller has
// to read the resource.
func SendWrite(ctx context.Context, send func(context.Context) error) (Sent, error) {
	s := Sent{First: time.Now()}
	loop := retry.Budget{Attempts: 6, Elapsed: time.Minute, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}}.Start()
	once := policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	for {
		err := send(once)
		if err == nil {
			return s, nil
		}
		answer := azerr.Classify(err)
		if answer.Ambiguous() {
			s.Ambiguous++
		}
		if !answer.Transient() || loop.Next(ctx, answer.RetryAfter) != nil {
			return s, err
		}
	}
}

// AfterAmbiguous turns the error that ended a write into an unknown outcome if an earlier response was ambiguous.
func AfterAmbiguous(s Sent, err error) error {
	if err == nil || s.Ambiguous == 0 || errors.Is(err, optimistic.ErrOutcomeUnknown) {
		return err
	}
	return &fail.UnknownError{Why: "the response was lost", Err: err}
}
