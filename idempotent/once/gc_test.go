//go:build !race

// Hundreds of keys, one after the other, in one goroutine: the race detector has seen such runs in the other tests of this package.

package once

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestResultsAreDeletedWhenTheyAreOld(t *testing.T) {
	for _, kind := range []aztest.FaultKind{"", aztest.LoseAnswer, aztest.Throttle, aztest.FailAfterCommit} {
		inBubble(t, func(t *testing.T, r *rig) {
			o := r.once(r.service)
			store := func(key string) {
				if _, err := o.Do(t.Context(), key, nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { return nil, nil }); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 105 { // more than a transaction holds
				store(fmt.Sprint("old", i))
			}
			pass(48 * time.Hour)
			store("young")
			if _, err := o.GC(t.Context(), 0); err == nil {
				t.Error("no age is an error")
			}
			r.service.Reset()
			if kind != "" {
				r.service.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Entity Group Transaction"), Count: 1})
			}
			n, err := o.GC(t.Context(), 24*time.Hour)
			known := 105
			if kind == aztest.LoseAnswer || kind == aztest.FailAfterCommit {
				known = 5
			}
			if err != nil || n != known || kind == "" && r.service.Requests() != 3 {
				t.Errorf("%s: deleted %d, %v in %v", kind, n, err, r.ops())
			}
			if n, err := o.GC(t.Context(), 24*time.Hour); err != nil || n != 0 {
				t.Errorf("%s: deleted %d more, %v", kind, n, err)
			}
			if _, found, err := o.Look(t.Context(), "old7"); found || err != nil {
				t.Errorf("%s: old: %t, %v", kind, found, err)
			}
			if _, found, err := o.Look(t.Context(), "young"); !found || err != nil {
				t.Errorf("%s: young: %t, %v", kind, found, err)
			}
		})
	}
}
