package tables

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestNothingToWriteSendsNothing(t *testing.T) {
	s, client := bank(t)
	for name, tt := range map[string]struct {
		change func(context.Context, *Tx) error
		cost   int
	}{
		"nothing at all": {func(context.Context, *Tx) error { return nil }, 0},
		"only reads":     {func(ctx context.Context, tx *Tx) error { _, err := tx.Get(ctx, "a", nil); return err }, 1},
		"no difference": {func(ctx context.Context, tx *Tx) error {
			var a account
			_, err := tx.Get(ctx, "a", &a)
			return errors.Join(err, tx.Update("a", a), tx.Merge("a", a))
		}, 1},
		"skipped": {func(_ context.Context, tx *Tx) error { return errors.Join(tx.Delete("a"), optimistic.ErrSkip) }, 0},
		"inserted and undone": {func(ctx context.Context, tx *Tx) error {
			_, err := tx.Peek(ctx, "x", nil)
			return errors.Join(err, tx.Insert("x", account{}), tx.Delete("x"))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s.Reset()
			res, err := Transact(t.Context(), client, "p", tt.change, nil)
			if err != nil || res.Changed {
				t.Errorf("Transact = %+v, %v", res, err)
			}
			billed(t, s, res, tt.cost)
		})
	}
	broken := errors.New("broken")
	if _, err := Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error { return errors.Join(tx.Delete("a"), broken) }, nil); !errors.Is(err, broken) {
		t.Errorf("the caller's error: %v", err)
	}
	if got := balances(t, client, "a"); got[0] != 100 {
		t.Error("something was written")
	}
}

func TestATransactionBeyondTheLimitsIsNotSent(t *testing.T) {
	s, client := bank(t)
	put := func(n, size int) func(context.Context, *Tx) error {
		return func(_ context.Context, tx *Tx) error {
			for i := range n {
				p := Properties{}
				for j := range size {
					p[fmt.Sprint("p", j)] = Property{EDMString, strings.Repeat("x", 30<<10)}
				}
				if err := tx.Put(fmt.Sprintf("r%03d", i), p); err != nil {
					return err
				}
			}
			return nil
		}
	}
	res, err := Transact(t.Context(), client, "p", put(100, 0), nil)
	if err != nil || len(res.ETags) != 100 {
		t.Errorf("100 entities: %d ETags, %v", len(res.ETags), err)
	}
	s.Reset()
	for want, change := range map[string]func(context.Context, *Tx) error{
		"101 entities":         put(101, 0),
		"the service takes 41": put(20, 10),
		"keys cannot be changed": func(_ context.Context, tx *Tx) error {
			return tx.Put("r", map[string]any{"PartitionKey": "q"})
		},
		"has not been read": func(_ context.Context, tx *Tx) error { return tx.Update("a", account{}) },
		"written in this":   func(_ context.Context, tx *Tx) error { return errors.Join(tx.Merge("a", account{}), tx.Delete("a")) },
		"merged without having": func(ctx context.Context, tx *Tx) error {
			_, err := tx.Get(ctx, "a", nil)
			return errors.Join(tx.Merge("z", account{}), func() error { _, err := tx.Get(ctx, "z", nil); return err }(), err)
		},
		"azconc's own": func(_ context.Context, tx *Tx) error {
			return tx.Put("a", Properties{optimistic.LineageKey: {EDMString, ""}})
		},
		"[]int cannot be an entity": func(_ context.Context, tx *Tx) error { return tx.Put("a", []int{1}) },
	} {
		if _, err := Transact(t.Context(), client, "p", change, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if s.Requests() != 1 {
		t.Errorf("%d requests, want the one that reads a", s.Requests())
	}
	s.Reset()
	_, err = Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error {
		return errors.Join(tx.Insert("r", account{}), tx.Insert("s", map[string]int{"a-b": 1})) // which only the service refuses
	}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "transact bank/p/s: 400 PropertyNameInvalid") || s.Requests() != 1 {
		t.Errorf("%v after %d requests", err, s.Requests())
	}
	var kept *Tx
	_, _ = Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error { kept = tx; return nil }, nil)
	if _, err := kept.Get(t.Context(), "a", nil); !errors.Is(err, errEnded) || !errors.Is(kept.Delete("a"), errEnded) || !errors.Is(kept.Put("a", account{}), errEnded) {
		t.Errorf("a Tx that has ended: %v", err)
	}
}

func TestATransactionOnQuotedKeys(t *testing.T) {
	s := aztest.New(nil)
	client := s.Table("bank")
	const partition = "o'brien's"
	for range 2 {
		_, err := Transact(t.Context(), client, partition, func(ctx context.Context, tx *Tx) error {
			var v account
			if _, err := tx.Get(ctx, "'", &v); err != nil {
				return err
			}
			v.Balance++
			return errors.Join(tx.Put("'", v), tx.Upsert("''", v))
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []string{"'", "''"} {
		if v, err := optimistic.Read(t.Context(), NewEntity[account](client, partition, row), nil); err != nil || v.Value.Balance != 2 {
			t.Errorf("%s: %+v, %v", row, v, err)
		}
	}
}

func TestTheNameOfATableIsKnown(t *testing.T) {
	if got := NewEntity[account](aztest.New(nil).Table("bank"), "p", "r").Resource(); got != "bank/p/r" {
		t.Errorf("%s: the SDK keeps the name elsewhere now", got)
	}
	if _, err := Transact(t.Context(), aztest.New(nil).TableService().NewClient("missing"), "p", move(1), nil); !azerr.Has(err, "TableNotFound") {
		t.Errorf("a table that does not exist: %v", err)
	}
	if _, err := Transact(t.Context(), aztest.New(nil).TableService().NewClient("missing"), "p", func(_ context.Context, tx *Tx) error { return tx.Delete("a") }, nil); !azerr.Has(err, "TableNotFound") {
		t.Errorf("a table that does not exist: %v", err)
	}
}
