package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/retry"
)

// Wait is how a caller waits for a key that another process works on. The zero value waits until the context ends.
type Wait struct {
	// Until is when waiting ends. Defaults to never.
	Until time.Time

	// Ended is what the error wraps at Until, beside ErrInProgress. Defaults to nothing.
	Ended error

	// Refused is called when the key is in progress and waiting goes on, and ends it by returning an error. Defaults to none.
	Refused func(*pessimistic.HeldError) error

	_ struct{}
}

// Do calls try, which uses Do or Begin, until its error is not ErrInProgress, and waits for 0.5 to 5.5 seconds in between. It returns
// what try returned last, and at Until ErrInProgress, wrapped together with Ended. A Wait is safe for concurrent use if Refused is.
func (w Wait) Do(ctx context.Context, try func() error) error {
	pace := retry.Backoff{Base: time.Second, Cap: 5 * time.Second}
	for n := 0; ; n++ {
		err := try()
		if !errors.Is(err, ErrInProgress) {
			return err
		}
		pause := pace.Base/2 + pace.Wait(n)
		if !w.Until.IsZero() {
			pause = min(pause, time.Until(w.Until))
		}
		switch held, ok := errors.AsType[*pessimistic.HeldError](err); {
		case pause <= 0 && w.Ended != nil:
			return fmt.Errorf("%w: %w", w.Ended, err)
		case pause <= 0:
			return err
		case ok && w.Refused != nil:
			if err := w.Refused(held); err != nil {
				return err
			}
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
