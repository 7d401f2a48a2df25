package scene

import (
	"context"
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/fence"
)

type order struct {
	Item string `json:"Item"`
}

func entity(ctx context.Context, s *stage) {
	s.rows(ctx)
	a, b := s.client("client 1"), s.client("client 2")
	if s.err != nil {
		return
	}
	target := func(c *client) tables.Entity[order] { return tables.NewEntity[order](c.table(), "eu", "17") }
	var first *optimistic.Version[order]
	s.ok(a, "inserts the entity", "optimistic.Create", "azconc table insert #/eu/17 --set Item=apples", func() error {
		_, err := optimistic.Create(ctx, target(a), order{"apples"}, nil)
		return err
	})
	s.ok(a, "reads it", "optimistic.Read", "azconc table get #/eu/17", func() (err error) {
		first, err = optimistic.Read(ctx, target(a), nil)
		return err
	})
	s.ok(b, "changes it", updateCall, "azconc table update #/eu/17 --set Item=pears", func() error {
		_, err := optimistic.Update(ctx, target(b), func(_ context.Context, o *order) error { o.Item = "pears"; return nil }, nil)
		return err
	})
	s.refused(a, "replaces the version that it has read", "optimistic.Replace", "azconc table replace #/eu/17 --if-match ETAG --set Item=plums", optimistic.ErrConflict, func() error {
		_, err := optimistic.Replace(ctx, target(a), first, order{"plums"}, nil)
		return err
	})
	s.ok(a, "overwrites whatever is there: If-Match: *", "tables.Upsert", "azconc table merge #/eu/17 --if-match '*' --set Item=plums", func() error {
		content, err := json.Marshal(map[string]string{"PartitionKey": "eu", "RowKey": "17", "Item": "plums"})
		if err == nil {
			any := azcore.ETagAny
			_, err = a.table().UpdateEntity(ctx, content, &aztables.UpdateEntityOptions{IfMatch: &any, UpdateMode: aztables.UpdateModeMerge})
		}
		return err
	})
	s.ok(b, "inserts or replaces: no condition", "tables.Upsert", "azconc table upsert #/eu/17 --set Item=cherries", func() error {
		_, err := tables.Upsert(ctx, target(b), order{"cherries"}, nil)
		return err
	})
	s.ok(a, "deletes the version that is there", "optimistic.Delete", "azconc table delete-entity #/eu/17", func() error {
		v, err := optimistic.Read(ctx, target(a), nil)
		if err == nil {
			_, err = optimistic.Delete(ctx, target(a), v.State, nil)
		}
		return err
	})
}

func tableLock(ctx context.Context, s *stage) {
	s.box(ctx)
	s.rows(ctx)
	a, b := s.client("holder 1"), s.client("holder 2")
	if s.err != nil {
		return
	}
	locker := func(c *client) (*pessimistic.Locker, string, error) {
		k, err := c.locker()
		if err != nil {
			return nil, "", err
		}
		name, err := k.TableLock(c.s.table(), "")
		return k, name, err
	}
	var held []*pessimistic.Hold
	take := func(c *client) func() error {
		return func() error {
			k, name, err := locker(c)
			if err != nil {
				return err
			}
			h, err := k.Lock(ctx, name, nil)
			if err == nil {
				held = append(held, h)
			}
			return err
		}
	}
	write := func(c *client, n int) func() error {
		return func() error {
			_, err := tables.Transact(ctx, c.table(), "eu", func(_ context.Context, tx *tables.Tx) error {
				return tx.Upsert("17", order{c.lane.client})
			}, &tables.TransactOptions{Holder: held[n]})
			return err
		}
	}
	const command = "azconc table lock run # --container @ -- CMD"
	s.ok(a, "locks the table by a blob", "Locker.TableLock", command, take(a))
	s.ok(b, "breaks the lock: holder 1 is paused and does not know", "Locker.Break", "azconc lock break @/NAME --now", func() error {
		k, name, err := locker(b)
		if err == nil {
			_, err = k.Break(ctx, name, &pessimistic.BreakOptions{Now: true})
		}
		return err
	})
	s.ok(b, "locks the table", "Locker.TableLock", command, take(b))
	s.ok(b, "writes with its fence", "tables.Transact", command, func() error { return write(b, 1)() })
	s.refused(a, "wakes up and writes with its older fence", "tables.Transact", command, fence.ErrFenced, func() error { return write(a, 0)() })
	s.ok(b, "gives the lock back", "Hold.Release", command, func() error { return held[1].Release(ctx) })
	s.refused(a, "gives back what it has lost", "Hold.Release", command, pessimistic.ErrLost, func() error { return held[0].Release(ctx) })
	for _, h := range held {
		_ = h.Release(context.WithoutCancel(ctx)) // if an act before has failed
	}
}
