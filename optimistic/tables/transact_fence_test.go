package tables

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestAnEarlierHolderCannotWriteToAPartition(t *testing.T) {
	s, client := bank(t)
	early, late := &optest.Holder{Token: 7}, &optest.Holder{Token: 8}
	first, err := Transact(t.Context(), client, "p", move(1), &TransactOptions{Holder: early})
	if err != nil {
		t.Fatal(err)
	}
	billed(t, s, first, 4) // the fence, a, b, the transaction
	for range 2 {
		if _, err := Transact(t.Context(), client, "p", move(10), &TransactOptions{Holder: late}); err != nil {
			t.Fatal(err)
		}
	}
	s.Reset()
	if _, err = Transact(t.Context(), client, "p", move(50), &TransactOptions{Holder: early}); !errors.Is(err, optimistic.ErrFenced) {
		t.Errorf("err = %v", err)
	}
	if got := balances(t, client, "a", "b"); !slices.Equal(got, []int{79, 121}) {
		t.Errorf("balances %v", got)
	}
}

func TestAHolderPausedBeforeItsTransactionIsRefused(t *testing.T) {
	for name, change := range map[string]func(context.Context, *Tx) error{
		"of its reads":     move(50),
		"an insert":        func(_ context.Context, tx *Tx) error { return tx.Insert("new", account{}) },
		"a blind deletion": func(_ context.Context, tx *Tx) error { return tx.Delete("c") },
		"a blind put":      func(_ context.Context, tx *Tx) error { return tx.Put("c", account{Balance: 5}) },
	} {
		t.Run(name, func(t *testing.T) {
			s, client := bank(t)
			early, late := &optest.Holder{Token: 7}, &optest.Holder{Token: 8}
			claim := func(context.Context, *Tx) error { return nil }
			if _, err := Transact(t.Context(), client, "p", claim, &TransactOptions{Holder: early}); err != nil {
				t.Fatal(err)
			}
			_, err := Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
				if optimistic.EarlierRuns(ctx) == 0 {
					if _, err := Transact(context.WithoutCancel(ctx), client, "p", claim, &TransactOptions{Holder: late}); err != nil {
						t.Error(err)
					}
				}
				return change(ctx, tx)
			}, &TransactOptions{Holder: early})
			if !errors.Is(err, optimistic.ErrFenced) {
				t.Errorf("err = %v:\n%v", err, s.Log())
			}
			if got := balances(t, client, "a", "b", "c", "new"); !slices.Equal(got, []int{100, 100, 100, -1}) {
				t.Errorf("balances %v", got)
			}
		})
	}
}

func TestAHolderThatHasLostTheLockSendsNoTransaction(t *testing.T) {
	for name, lost := range optest.LostLocks() {
		synctest.Test(t, func(t *testing.T) {
			service, table := bank(t)
			h := &optest.Holder{Token: 7, Lost: lost}
			res, err := Transact(t.Context(), table, "p", move(10), &TransactOptions{Holder: h})
			if !errors.Is(err, optest.ErrLockLost) || errors.Is(err, optimistic.ErrOutcomeUnknown) || errors.Is(err, optimistic.ErrNotFound) || res.Ambiguous != 0 || h.Asked != 1 {
				t.Errorf("%s: %+v, %v, asked %d times", name, res, err, h.Asked)
			}
			billed(t, service, res, 3) // the fence, a, b
		})
	}
}

func TestALostResponseOfAFencedTransactionIsResolved(t *testing.T) {
	h := &optest.Holder{Token: 7}
	service, table := bank(t)
	service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
	moved, err := Transact(t.Context(), table, "p", move(10), &TransactOptions{Holder: h})
	if got := balances(t, table, "a", "b"); err != nil || moved.Ambiguous != 1 || !slices.Equal(got, []int{90, 110}) {
		t.Errorf("%+v, %v, %v", moved, err, got)
	}
}
