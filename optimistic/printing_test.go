package optimistic_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/aztest"
)

// printing is a target that logs the lineage it is given, and stores another one, which lacks the entry of its write.
type printing struct {
	sealed.Target[optest.Counter]
	optimistic.Sealed[optest.Counter]
}

func (p printing) Prepare(base *sealed.Version[optest.Counter], value optest.Counter, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	fmt.Fprintf(io.Discard, "%v %s", lineage, lineage.OperationsString())
	return p.Target.Prepare(base, value, base.Lineage, c)
}

// TestPrintingALineageStoresNothing: what a write can be recognized by is what it stores. A change of a target that only
// printed its entry was applied twice.
func TestPrintingALineageStoresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		if _, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil); err != nil {
			t.Fatal(err)
		}
		blob, _ := sealed.Behind[optest.Counter](blobs.NewJSON[optest.Counter](client))
		target := printing{Target: blob}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		_, err := optimistic.Update(t.Context(), target, optest.Increment, nil)
		if n := optest.Count(t, client); n != 2 || !errors.Is(err, optimistic.ErrOutcomeUnknown) {
			t.Errorf("n = %d, %v; want 2 and an unknown outcome", n, err)
		}
		_, err = optimistic.Update(t.Context(), target, optest.Increment, &optimistic.UpdateOptions{OperationID: "op"})
		if n := optest.Count(t, client); n != 2 || err == nil {
			t.Errorf("n = %d, %v; want a refusal of an operation that nothing would remember", n, err)
		}
	})
}
