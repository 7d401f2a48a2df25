package protocol

import (
	"math"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// contentionFactor spaces contending writers. Each waits a random part of that many round trips per contender, and less
// the more often it has lost, so that none starves. In simulation, with a client for each writer and round trips of 5
// ms, 6 gives 3.4 requests per commit for 8 writers and 4.7 for 32 (full jitter: 3.8 and 6.0), more commits per second
// than a single writer makes, and no writer below 0.6 of the mean. A smaller factor costs requests; a larger one costs
// fairness and time.
const contentionFactor = 6

// Pause is how long to wait after a conflict. The lineage shows how many clients write at the moment, and so how long
// it takes until each of them has had its turn. If it does not show that (writers outside azconc, no lineage,
// goroutines that share one SDK client), the wait is the full jitter of backoff.
func (c *Call) Pause(seen Lineage, backoff retry.Backoff) time.Duration {
	n := seen.contenders(c.Res.Conflicts)
	if n == 0 || c.trip == 0 {
		return backoff.Wait(c.Res.Conflicts - 1)
	}
	bound := time.Duration(contentionFactor * n * float64(c.trip) / math.Sqrt(float64(c.Res.Conflicts)))
	return retry.Backoff{Base: min(bound, backoff.Cap), Cap: backoff.Cap, Rand: backoff.Rand}.Wait(0)
}
