package main

import (
	"context"
	"errors"
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

const (
	tallyBlobs    = 3
	operationLife = 4 * time.Second // all workers try the same operation for so long
)

// tallyLanes are the ways in which the lanes of a worker count: all change the same few blobs and entities.
var tallyLanes = []string{"blob", "blob", "entity", "entity", "document", "document", "document", "transaction", "transaction", "operation"}

// tallies are where the numbers are. A transaction changes two entities alike.
func tallies(s *site) map[string]optimistic.Target[tally] {
	all := map[string]optimistic.Target[tally]{"document": tallyBlob(s, "document")}
	for i := range tallyBlobs {
		all[fmt.Sprint("blob-", i)] = tallyBlob(s, fmt.Sprint("blob-", i))
	}
	for _, row := range []string{"entity", "transaction", "copy"} {
		all[row] = tables.NewEntity[tally](s.table("tallies"), "p", row)
	}
	return all
}

func tallyBlob(s *site, name string) blobs.Blob[tally] {
	return blobs.NewJSON[tally](s.container("tallies").NewBlockBlobClient(name))
}

// seedTallies stores what the tallies begin with.
func seedTallies(ctx context.Context, s *site) (err error) {
	for _, target := range tallies(s) {
		_, failed := optimistic.Create(ctx, target, tally{}, nil)
		err = errors.Join(err, failed)
	}
	return err
}

// workTallies counts with Update, Document, Transact and OperationID.
func workTallies(ctx context.Context, w *worker) {
	targets := tallies(w.site)
	document, err := optimistic.NewDocument(tallyBlob(w.site, "document"), nil)
	must(err)
	w.repeat(ctx, "tally", len(tallyLanes), 200*time.Millisecond, func(l *lane) {
		of := tallyLanes[l.index]
		switch of {
		case "operation":
			l.operation(ctx, targets["blob-0"])
			return
		case "blob":
			of = fmt.Sprint("blob-", l.roll(tallyBlobs))
		}
		n := l.journal.begin(note{Kind: "tally", Lane: l.name, Of: of})
		change := func(_ context.Context, t *tally) error {
			n.N = (*t)[l.name]
			(*t)[l.name]++
			return nil
		}
		var err error
		switch of {
		case "document":
			_, err = document.Update(ctx, change)
		case "transaction":
			err = l.transaction(ctx, change)
		default:
			_, err = optimistic.Update(ctx, targets[of], change, nil)
		}
		l.done(ctx, n, err)
	})
}

// transaction makes a change to two entities.
func (l *lane) transaction(ctx context.Context, change func(context.Context, *tally) error) error {
	_, err := tables.Transact(ctx, l.site.table("tallies"), "p", func(ctx context.Context, tx *tables.Tx) error {
		for _, row := range []string{"copy", "transaction"} {
			var t tally
			if _, err := tx.Get(ctx, row, &t); err != nil {
				return err
			}
			if err := change(ctx, &t); err != nil {
				return err
			}
			if err := tx.Put(row, t); err != nil {
				return err
			}
		}
		return nil
	}, nil)
	return err
}

// operation applies an OperationID that all workers apply at about the same time.
func (l *lane) operation(ctx context.Context, target optimistic.Target[tally]) {
	id := fmt.Sprint("op-", now()/int64(operationLife))
	n := l.journal.begin(note{Kind: "operation", Lane: l.name, Of: id})
	_, err := optimistic.Update(ctx, target, func(_ context.Context, t *tally) error {
		(*t)[id]++
		return nil
	}, &optimistic.UpdateOptions{OperationID: id})
	l.done(ctx, n, err)
}

func judgeTallies(ctx context.Context, s *site, j *judgement) error {
	final := map[string]tally{}
	for of, target := range tallies(s) {
		v, err := optimistic.Read(ctx, target, nil)
		if err != nil {
			return err
		}
		final[of] = v.Value
	}
	whole := j.say("transactions applied as a whole")
	whole.judged = len(final["transaction"])
	if !maps.Equal(final["transaction"], final["copy"]) {
		whole.wrong("the two entities of each transaction have %v and %v", final["transaction"], final["copy"])
	}
	counted := j.say("updates applied once")
	for key, calls := range j.records.of("tally").by(func(n note) string { return n.Of + " " + n.Lane }) {
		of, lane, _ := strings.Cut(key, " ")
		counted.count(lane, of, calls, final[of][lane])
	}
	once := j.say("operation ids applied once")
	for id, calls := range j.records.of("operation").by(func(n note) string { return n.Of }) {
		once.judged++
		if n := final["blob-0"][id]; n > 1 || n == 0 && slices.ContainsFunc(calls, func(n note) bool { return n.Out == ok }) {
			once.wrong("%s was applied %d times", id, n)
		}
	}
	return nil
}
