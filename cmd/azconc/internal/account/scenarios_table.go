package main

import (
	"context"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest/conformance"
)

// updateEntity: changes of an entity are applied exactly once, under contention and when responses are lost.
func updateEntity(t conformance.T, r *rig) {
	target := tables.NewEntity[counter](r.table(t, r.lossy), "p", "counter")
	value := func() int {
		v, err := optimistic.Read(t.Context(), target, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.Value.N
	}
	r.lose("Insert Entity")
	_, err := optimistic.Create(t.Context(), target, counter{}, nil)
	r.lost(t)
	show(t, "insert, response lost", "ok", outcome(err))

	done, err := contend(4, 5, func() error {
		_, err := optimistic.Update(t.Context(), target, increment, nil)
		return err
	})
	show(t, "4 writers × 5 updates", "ok", outcome(err))
	show(t, "4 writers × 5 updates: value less successes", 0, value()-done)

	before := value()
	r.lose("Update Entity", "Merge Entity")
	res, err := optimistic.Update(t.Context(), target, increment, nil)
	r.lost(t)
	show(t, "update, response lost", "ok", outcome(err))
	show(t, "update, response lost: applied", 1, value()-before)
	show(t, "update, response lost: proved", 1, res.Resolved)
}

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
		for row, n := range map[string]*int{"from": &from, "to": &to} {
			v, err := optimistic.Read(t.Context(), tables.NewEntity[counter](table, "p", row), nil)
			if err != nil {
				t.Fatal(err)
			}
			*n = v.Value.N
		}
		return from, to
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
