//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package tables

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestACrowdOfTransactionsLeavesNothingUnknown, even if every conflict is to be proved: the lineage of the row for which they
// contend reaches as far as the crowd.
func TestACrowdOfTransactionsLeavesNothingUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: optest.Latencies(1)})
		optest.Insert(t, s.Table("t"), "total", `{"n":0}`)
		clients, each := 500, 2 // of fewer, none waits for longer than the least lineage reaches
		if testing.Short() {
			clients, each = 144, 2
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		applied, unknown := 0, 0
		for range clients {
			all.Go(func() {
				table := s.Table("t")
				for range each {
					_, err := Transact(context.Background(), table, "p", func(ctx context.Context, tx *Tx) error {
						var c optest.Counter
						if _, err := tx.Get(ctx, "total", &c); err != nil {
							return err
						}
						c.N++
						return tx.Update("total", c)
					}, &TransactOptions{Attempts: -1, Elapsed: -1, SendOptions: optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmAlways}})
					mu.Lock()
					switch {
					case err == nil:
						applied++
					case errors.Is(err, optimistic.ErrOutcomeUnknown):
						unknown++
					default:
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if applied != clients*each {
			t.Errorf("%d of %d applied, %d unknown", applied, clients*each, unknown)
		}
		v, err := optimistic.Read(t.Context(), NewEntity[optest.Counter](s.Table("t"), "p", "total"), nil)
		if err != nil || v.Value.N != applied {
			t.Errorf("the total is %+v, %v, want %d", v, err, applied)
		}
	})
}
