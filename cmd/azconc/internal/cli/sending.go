package cli

import (
	"context"
	"errors"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Sent is the result of a write that the command sends itself.
type Sent struct {
	Ambiguous int       // tries after which it is open whether the write was applied
	First     time.Time // when the first request was sent
}

// SendWrite sends one write with the SDK's retries off, and sends it again while the error is transient. It returns the
// last error unchanged: after an ambiguous try, a refusal may be the effect of the write's own first try.
func SendWrite(ctx context.Context, send func(context.Context) error) (Sent, error) {
	budget := retry.Budget{Attempts: 6, Elapsed: time.Minute, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 10 * time.Second}}
	s, err := wire.Wire{}.Send(ctx, "", wire.Again{Budget: budget}, send)
	if err != nil && s.Last != nil {
		err = s.Last
	}
	return Sent{Ambiguous: s.Ambiguous, First: s.First}, err
}

// AfterAmbiguous turns the error that ended a write into an unknown outcome if an earlier response was ambiguous.
func AfterAmbiguous(s Sent, err error) error {
	if err == nil || s.Ambiguous == 0 || errors.Is(err, optimistic.ErrOutcomeUnknown) {
		return err
	}
	return &fail.UnknownError{Why: "the response was lost", Err: err}
}
