package file

import (
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// WaitFor returns a loop that polls for this long, or without a bound if wait is 0.
func WaitFor(wait time.Duration, pace retry.Backoff) *retry.Loop {
	if wait == 0 {
		wait = -1
	}
	return retry.Budget{Attempts: -1, Elapsed: wait, Backoff: pace}.Start()
}
