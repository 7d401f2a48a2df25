package pairs

import (
	"cmp"
	"context"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

// entityOfMode returns an entity as a target.
func entityOfMode(mode tables.Mode) func(p *port, c call) optimistic.Target[document] {
	return func(p *port, _ call) optimistic.Target[document] {
		e := tables.NewEntity[document](p.table(), "p", "r")
		e.Mode = mode
		return e
	}
}

func entityWays() (ways []*way) {
	pl := entityPlace
	const takes = "id,etag,*,id and etag,id and *,dry run,create,no lineage,always"
	for name, mode := range map[string]tables.Mode{"MergeChanges": tables.MergeChanges, "ReplaceWhole": tables.ReplaceWhole} {
		read := targetWays(name, pl, "row", takes, entityOfMode(mode), inDocument, nil)
		read[1].takes = "id,no lineage,always" // it refuses a base that was not read
		ways = append(ways, read...)
	}
	ways = append(ways, targetWays("MergeGiven", pl, "row", takes, entityOfMode(tables.MergeGiven), inDocument, nil)[1])
	ways = append(ways, targetWays("ReplaceGiven", pl, "row", takes, entityOfMode(tables.ReplaceGiven), inDocument, nil)[1])
	upsert := func(mode tables.Mode) func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
		return func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
			e := tables.NewEntity[document](p.table(), "p", "r")
			e.Mode = mode
			return tables.Upsert(ctx, e, document{c.given()}, nil)
		}
	}
	ways = append(ways,
		&way{name: "Create", place: pl, facet: "row", run: create(entityOfMode(0), inDocument), takes: "create,id and create", creates: true, final: true},
		&way{name: "Upsert, merge", place: pl, facet: "row", run: upsert(tables.MergeChanges), blind: true, traceless: true, lastWins: true},
		&way{name: "Upsert, replace", place: pl, facet: "row", run: upsert(tables.ReplaceWhole), blind: true, traceless: true, lastWins: true, forgets: true},
	)
	return append(ways, transactWays()...)
}

// verbs are those of a transaction that write a value.
var verbs = []struct {
	name string
	do   func(tx *tables.Tx, row string, value any) error
}{
	{"Update", (*tables.Tx).Update}, {"Put", (*tables.Tx).Put}, {"Merge", (*tables.Tx).Merge}, {"Upsert", (*tables.Tx).Upsert}, {"Replace", (*tables.Tx).Replace},
}

func transactWays() (ways []*way) {
	const takes = "id,holder,id and holder,no lineage,always,lost"
	transact := func(change func(ctx context.Context, tx *tables.Tx, c call) error) func(context.Context, *port, call) (optimistic.Result, error) {
		return func(ctx context.Context, p *port, c call) (optimistic.Result, error) {
			res, err := tables.Transact(ctx, p.table(), "p", func(ctx context.Context, tx *tables.Tx) error { return change(ctx, tx, c) }, c.transacting())
			return res.Result, err
		}
	}
	add := func(name, takes string, w way, change func(ctx context.Context, tx *tables.Tx, c call) error) {
		w.name, w.place, w.facet, w.takes, w.run = "Transact, "+name, entityPlace, "row", takes, transact(change)
		ways = append(ways, &w)
	}
	for _, verb := range verbs {
		read := func(look func(*tables.Tx, context.Context, string, any) (bool, error)) func(ctx context.Context, tx *tables.Tx, c call) error {
			return func(ctx context.Context, tx *tables.Tx, c call) error {
				var d document
				if found, err := look(tx, ctx, "r", &d); err != nil || !found {
					return cmp.Or(err, error(&optimistic.NotFoundError{Op: "get", Resource: "r"}))
				}
				return verb.do(tx, "r", document{c.added(d.Log)})
			}
		}
		add("Get and "+verb.name, takes, way{}, read((*tables.Tx).Get))
		if verb.name == "Update" {
			add("Peek and "+verb.name, takes, way{}, read((*tables.Tx).Peek))
			continue
		}
		add(verb.name+" unread", takes, way{blind: true, final: true}, func(_ context.Context, tx *tables.Tx, c call) error {
			return verb.do(tx, "r", document{c.given()})
		})
	}
	add("Insert", "create,id and create,holder and create", way{creates: true, final: true}, func(_ context.Context, tx *tables.Tx, c call) error {
		return tx.Insert("r", document{c.mark})
	})
	add("Get and Insert", "create,id and create,holder and create", way{creates: true, final: true}, func(ctx context.Context, tx *tables.Tx, c call) error {
		if _, err := tx.Get(ctx, "r", nil); err != nil {
			return err
		}
		return tx.Insert("r", document{c.mark})
	})
	return ways
}
