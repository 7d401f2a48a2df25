package optimistic_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestARefusalThatNothingConfirmsIsUnknown: the write is delivered twice, and between the deliveries a writer outside
// azconc replaces it with its lineage. The refusal of the second delivery is no proof that the first was refused.
func TestARefusalThatNothingConfirmsIsUnknown(t *testing.T) {
	for name, trust := range map[string]bool{"looked into": false, "trusted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, `{"n":0}`)
				s.SetFaults(aztest.Fault{Kind: aztest.AnswerTwice, Match: aztest.Writes, Delay: 30 * time.Millisecond, Count: 1})
				go func() {
					bubble.Sleep(10 * time.Millisecond)
					optest.Put(t, client, `{"n":100}`)
				}()
				_, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), optest.Increment, &optimistic.UpdateOptions{Sending: optimistic.Sending{TrustConflicts: trust}})
				unknown, ok := errors.AsType[*optimistic.UnknownError](err)
				if trust && err != nil || !trust && (!ok || !unknown.Unconfirmed) {
					t.Errorf("Update = %v, want success only where the refusal is trusted", err)
				}
				want := 100
				if trust {
					want = 101
				}
				if got := optest.Count(t, client); got != want {
					t.Errorf("n = %d, want %d", got, want)
				}
			})
		})
	}
}
