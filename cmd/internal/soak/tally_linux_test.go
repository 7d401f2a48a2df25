package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
)

// tally is the content: a number for each lane and for each operation id.
type tally map[string]int64

func (t *tally) add(name string) error {
	if *t == nil {
		*t = tally{}
	}
	(*t)[name]++
	return nil
}

// operationLife is how long all workers try the same operation.
const operationLife = 4 * time.Second

// tallyLanes are the ways in which the lanes of a worker count: all change the same few blobs and entities.
var tallyLanes = []string{"blob", "blob", "entity", "entity", "document", "document", "document", "transaction", "transaction", "operation"}

// tallies are where the numbers are. A transaction changes two entities alike.
func tallies(s *site) map[string]optimistic.Target[tally] {
	all := map[string]optimistic.Target[tally]{}
	for _, name := range []string{"document", "blob-0", "blob-1", "blob-2"} {
		all[name] = blobs.NewJSON[tally](s.container("tallies").NewBlockBlobClient(name))
	}
	for _, row := range []string{"entity", "transaction", "copy"} {
		all[row] = tables.NewEntity[tally](s.table("tallies"), "p", row)
	}
	return all
}

// workTallies counts with Update, Document, Transact and OperationID.
func workTallies(ctx context.Context, w *worker) {
	targets := tallies(w.site)
	o := optimistic.UpdateOptions{Create: true, SendOptions: proven}
	document, err := optimistic.NewDocument(targets["document"], &optimistic.DocumentOptions{Update: o})
	must(err)
	w.repeat(ctx, "tally", len(tallyLanes), 200*time.Millisecond, func(l *lane) {
		of := tallyLanes[l.index]
		switch of {
		case "operation":
			l.operation(ctx, targets["blob-0"])
			return
		case "blob":
			of = fmt.Sprint("blob-", l.roll(3))
		}
		n := l.journal.begin(note{Kind: "tally", Lane: l.name, Of: of})
		change := func(_ context.Context, t *tally) error {
			n.N = (*t)[l.name]
			return t.add(l.name)
		}
		var err error
		switch of {
		case "document":
			_, err = document.Update(ctx, change)
		case "transaction":
			_, err = tables.Transact(ctx, l.site.table("tallies"), "p", func(ctx context.Context, tx *tables.Tx) error {
				if err := changeRow(ctx, tx, "copy", change); err != nil {
					return err
				}
				return changeRow(ctx, tx, "transaction", change)
			}, &tables.TransactOptions{SendOptions: proven})
		default:
			_, err = optimistic.Update(ctx, targets[of], change, &o)
		}
		l.done(ctx, n, err)
	})
}

// operation applies an OperationID that all workers apply at about the same time.
func (l *lane) operation(ctx context.Context, target optimistic.Target[tally]) {
	id := fmt.Sprint("op-", now()/int64(operationLife))
	n := l.journal.begin(note{Kind: "operation", Lane: l.name, Of: id})
	_, err := optimistic.Update(ctx, target, func(_ context.Context, t *tally) error { return t.add(id) },
		&optimistic.UpdateOptions{OperationID: id, Create: true, SendOptions: proven})
	l.done(ctx, n, err)
}

func judgeTallies(ctx context.Context, s *soak) error {
	final := map[string]tally{}
	for of, target := range tallies(s.site) {
		value, err := stored(ctx, target)
		if err != nil {
			return err
		}
		final[of] = value
	}
	whole := s.say("transactions applied as a whole")
	whole.judged = len(final["transaction"])
	if !maps.Equal(final["transaction"], final["copy"]) {
		whole.wrong("the two entities of each transaction have %v and %v", final["transaction"], final["copy"])
	}
	counted := s.say("updates applied once")
	for key, calls := range s.records.of("tally").by(func(n note) string { return n.Of + " " + n.Lane }) {
		of, lane, _ := strings.Cut(key, " ")
		counted.count(lane, of, calls, final[of][lane])
	}
	once := s.say("operation ids applied once")
	for id, calls := range s.records.of("operation").by(func(n note) string { return n.Of }) {
		once.judged++
		if n := final["blob-0"][id]; n > 1 || n == 0 && slices.ContainsFunc(calls, func(n note) bool { return n.Out == ok }) {
			once.wrong("%s was applied %d times", id, n)
		}
	}
	return nil
}
