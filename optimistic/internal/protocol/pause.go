package protocol

import (
	"math"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// contentionFactor spaces contending writers. Each waits for a random part of that many round trips per contender, and
// less the more often it has lost, so that none starves. In simulation, with a client for each writer and round trips
// of 5 ms, 6 gives 3.4 requests per commit for 8 writers and 4.7 for 32 (full jitter: 3.8 and 6.0), more commits per
// second than a single writer makes, and no writer below 0.6 of the mean. A smaller factor costs requests; a larger one
// costs fairness and time.
const contentionFactor = 6

// Pause returns the time to wait after a conflict. The lineage shows how many clients are writing, and so how long it
// takes until each of them has had its turn. If it does not show that (writers outside azconc, no lineage, goroutines
// that share one SDK client), the wait is the full jitter of backoff.
func (c *Call) Pause(seen Lineage, backoff retry.Backoff) time.Duration {
	n := seen.contenders(c.Res.Conflicts)
	if n == 0 || c.trip == 0 {
		return backoff.Wait(c.Res.Conflicts - 1)
	}
	bound := time.Duration(contentionFactor * n * float64(c.trip) / math.Sqrt(float64(c.Res.Conflicts)))
	return retry.Backoff{Base: min(bound, backoff.Cap), Cap: backoff.Cap, Rand: backoff.Rand}.Wait(0)
}

// Outlasts reports whether the lineage may no longer prove the fate of the refused write after the pause, so that a
// look has to come before it. Writers of one resource commit at most once per round trip, because each has to read what
// the one before has written.
func (c *Call) Outlasts(pause time.Duration, open *Refusal) bool {
	if open.Conflict.Judged || !c.Doubtful(open.Change) || c.trip == 0 {
		return false
	}
	base := open.Change.Base.Lineage
	reach := float64(c.S.LineageSize)
	switch {
	case base.contenders(1) == 0: // the writers are not known, so other calls may use the same client
	case base.latest(mark(open.Change.ID)) != "":
		reach = math.Inf(1)
	default:
		reach += clientsKept
	}
	return float64(pause) > 0.75*reach*float64(c.trip)
}
