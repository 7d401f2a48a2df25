package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

const (
	accounts      = 8
	opening       = 1000
	transferLanes = 2
)

type balance struct {
	Cents int64 `json:"cents"`
}

type moved struct {
	N int64 `json:"n"`
}

func transferTable(s *site) *aztables.Client { return s.table("transfers") }

func accountRow(i int) string { return fmt.Sprintf("account-%d", i) }

// rowOf is a lane's row: a row key may not have a slash.
func rowOf(lane string) string { return strings.ReplaceAll(lane, "/", "-") }

// seedAccounts opens the accounts.
func seedAccounts(ctx context.Context, s *site) error {
	for i := range accounts {
		if _, err := optimistic.Create(ctx, tables.NewEntity[balance](transferTable(s), "p", accountRow(i)), balance{opening}, nil); err != nil {
			return err
		}
	}
	return nil
}

// workTransfers moves money between the accounts of a partition with Transact. Each transaction also counts itself in a row
// of its lane.
func workTransfers(ctx context.Context, w *worker) {
	table := transferTable(w.site)
	w.repeat(ctx, "transfer", transferLanes, 300*time.Millisecond, func(l *lane) {
		from, to, cents := l.roll(accounts), l.roll(accounts-1), int64(1+l.roll(100))
		if to >= from {
			to++
		}
		n := l.journal.begin(note{Kind: "transfer", Lane: l.name, Of: "partition"})
		_, err := tables.Transact(ctx, table, "p", func(ctx context.Context, tx *tables.Tx) error {
			var a, b balance
			var own moved
			if _, err := tx.Get(ctx, accountRow(from), &a); err != nil {
				return err
			}
			if _, err := tx.Get(ctx, accountRow(to), &b); err != nil {
				return err
			}
			if _, err := tx.Get(ctx, rowOf(l.name), &own); err != nil {
				return err
			}
			n.N = own.N
			a.Cents, b.Cents, own.N = a.Cents-cents, b.Cents+cents, own.N+1
			if err := tx.Put(accountRow(from), a); err != nil {
				return err
			}
			if err := tx.Put(accountRow(to), b); err != nil {
				return err
			}
			return tx.Put(rowOf(l.name), own)
		}, nil)
		l.done(ctx, n, err)
	})
}

func judgeTransfers(ctx context.Context, s *site, j *judgement) error {
	table := transferTable(s)
	sum := int64(0)
	for i := range accounts {
		v, err := optimistic.Read(ctx, tables.NewEntity[balance](table, "p", accountRow(i)), nil)
		if err != nil {
			return err
		}
		sum += v.Value.Cents
	}
	whole := j.say("transactions applied once, as a whole")
	if sum != accounts*opening {
		whole.wrong("the accounts hold %d cents, and began with %d", sum, accounts*opening)
	}
	for lane, calls := range j.records.of("transfer").by(func(n note) string { return n.Lane }) {
		least, most := single(whole, calls)
		v, err := optimistic.Read(ctx, tables.NewEntity[moved](table, "p", rowOf(lane)), nil)
		found := int64(0)
		if err == nil {
			found = v.Value.N
		} else if least > 0 {
			return err
		}
		closing(whole, lane, "partition", least, most, found)
	}
	return nil
}
