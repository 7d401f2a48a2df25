package main

import (
	"context"

	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest/conformance"
)

// transact: all writes of a transaction or none, once, even if its response is lost.
func transact(t conformance.T, r *rig) {
	table := r.table(t, r.lossy)
	move := func(ctx context.Context, tx *tables.Tx) error {
		var from, to counter
		if _, err := tx.Get(ctx, "from", &from); err != nil {
			return err
		}
		if _, err := tx.Get(ctx, "to", &to); err != nil {
			return err
		}
		from.N--
		to.N++
		if err := tx.Put("from", from); err != nil {
			return err
		}
		return tx.Put("to", to)
	}
	balance := func() (from, to int) {
		return read(t, tables.NewEntity[counter](table, "p", "from")), read(t, tables.NewEntity[counter](table, "p", "to"))
	}
	_, err := tables.Transact(t.Context(), table, "p", move, nil)
	show(t, "two inserts", "ok", outcome(err))
	done, err := contend(3, 4, func() error {
		_, err := tables.Transact(t.Context(), table, "p", move, nil)
		return err
	})
	show(t, "3 writers × 4 transactions", "ok", outcome(err))
	from, to := balance()
	show(t, "3 writers × 4 transactions: sum", 0, from+to)
	show(t, "3 writers × 4 transactions: moved less successes", 0, to-done-1)

	r.lose("Entity Group Transaction")
	res, err := tables.Transact(t.Context(), table, "p", move, nil)
	r.lost(t)
	show(t, "transaction, response lost", "ok", outcome(err))
	show(t, "transaction, response lost: proved", 1, res.Resolved)
	after, _ := balance()
	show(t, "transaction, response lost: applied", 1, from-after)
}
