package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// sent is the result of a write that the command sends itself, without the optimistic package.
type sent struct {
	ambiguous int       // responses that left open whether it was carried out
	first     time.Time // when the first request left
}

// sendWrite sends one write with the SDK's retries off, and sends it again while the error is transient. It returns the
// service's last response untouched: after an ambiguous one, a refusal may be the effect of our own write, and the caller has
// to read the resource.
func sendWrite(ctx context.Context, send func(context.Context) error) (sent, error) {
	s := sent{first: time.Now()}
	loop := retry.Budget{Attempts: 6, Elapsed: time.Minute, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}}.Start()
	once := policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	for {
		err := send(once)
		if err == nil {
			return s, nil
		}
		answer := azerr.Classify(err)
		if answer.Ambiguous() {
			s.ambiguous++
		}
		if !answer.Transient() || loop.Next(ctx, answer.RetryAfter) != nil {
			return s, err
		}
	}
}

// unknownError is an outcome that could not be settled, for writes outside the optimistic package.
type unknownError struct {
	why string
	err error
}

func (e *unknownError) Error() string {
	if e.err == nil {
		return "outcome unknown: " + e.why
	}
	return fmt.Sprintf("outcome unknown: %s: %s", e.why, azerr.Summary(e.err))
}

func (e *unknownError) Unwrap() []error {
	if e.err == nil {
		return []error{optimistic.ErrOutcomeUnknown}
	}
	return []error{optimistic.ErrOutcomeUnknown, e.err}
}

// afterAmbiguous turns the error that ended a write into an unknown outcome if an earlier response was ambiguous.
func afterAmbiguous(s sent, err error) error {
	if err == nil || s.ambiguous == 0 || errors.Is(err, optimistic.ErrOutcomeUnknown) {
		return err
	}
	return &unknownError{why: "the response was lost", err: err}
}
