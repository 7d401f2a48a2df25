package optimistic_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestALongRetryAfterDoesNotHoldACall: a response that asked for a day, or for longer than a Duration can say, held a call
// for as long. There is no other bound: Elapsed is for conflicts.
func TestALongRetryAfterDoesNotHoldACall(t *testing.T) {
	for _, wish := range []time.Duration{24 * time.Hour, 1<<63 - 1} {
		for _, op := range []string{"Get Blob", "Put Blob"} {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, `{"n":1}`)
				s.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op(op), Count: 1, RetryAfter: wish})
				began := time.Now()
				_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
				if took := time.Since(began); err != nil || took > 2*time.Minute || took < 30*time.Second {
					t.Errorf("%s: %v after %v, want a success after about a minute", op, err, took)
				}
				if got := optest.Count(t, client); got != 2 {
					t.Errorf("%s: %d, want 2", op, got)
				}
			})
		}
	}
}
