package tables_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
)

type stock struct {
	Count int     `json:"count"`
	Price float64 `json:"price"`
}

func Example_entity() {
	ctx := context.Background()
	table := aztest.New(nil).Table("stock") // in production: an aztables.Client
	apples := tables.NewEntity[stock](table, "fruit", "apples")
	if _, err := optimistic.Create(ctx, apples, stock{Count: 10, Price: 2}, nil); err != nil {
		fmt.Println(err)
		return
	}
	res, err := optimistic.Update(ctx, apples, func(_ context.Context, s *stock) error {
		s.Count--
		return nil
	}, nil)
	fmt.Println(res.Changed, res.Requests, err)

	// All that is stored, with its types, is seen through Properties.
	v, err := optimistic.Read(ctx, tables.NewEntity[tables.Properties](table, "fruit", "apples"), nil)
	fmt.Println(v.Value["count"], v.Value["price"], err)
	// Output:
	// true 2 <nil>
	// {Edm.Int32 9} {Edm.Double 2.0} <nil>
}

func ExampleTransact() {
	ctx := context.Background()
	table := aztest.New(nil).Table("stock")
	for row, s := range map[string]stock{"shelf": {Count: 1}, "store": {Count: 5}} {
		if _, err := optimistic.Create(ctx, tables.NewEntity[stock](table, "apples", row), s, nil); err != nil {
			fmt.Println(err)
			return
		}
	}
	res, err := tables.Transact(ctx, table, "apples", func(ctx context.Context, tx *tables.Tx) error {
		var shelf, store stock
		if _, err := tx.Get(ctx, "shelf", &shelf); err != nil {
			return err
		}
		if _, err := tx.Get(ctx, "store", &store); err != nil {
			return err
		}
		if store.Count == 0 {
			return optimistic.ErrSkip
		}
		store.Count--
		shelf.Count++
		return errors.Join(tx.Update("shelf", shelf), tx.Update("store", store))
	}, nil)
	fmt.Println(res.Changed, len(res.ETags), res.Requests, err)
	// Output: true 2 3 <nil>
}
