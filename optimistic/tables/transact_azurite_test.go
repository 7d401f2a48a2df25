package tables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestTransactionsOnAzurite(t *testing.T) {
	emulated := azuritetest.Account(t)
	client := tableOnAzurite(t, emulated, emulated.TableURL)()
	for _, row := range []string{"a", "b", "c"} {
		optest.Insert(t, client, row, `{"balance":100,"limit":"9007199254740993","limit@odata.type":"Edm.Int64"}`)
	}
	res, err := Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
		if _, err := tx.Get(ctx, "c", nil); err != nil {
			return err
		}
		return errors.Join(move(30)(ctx, tx), tx.Insert("x", account{Balance: 1}))
	}, nil)
	if got := balances(t, client, "a", "b", "c", "x"); err != nil || res.Requests != 4 || !slices.Equal(got, []int{70, 130, 100, 1}) {
		t.Fatalf("%+v, %v, %v", res, err, got)
	}
	for _, row := range []string{"a", "b", "c", "x"} {
		p, state := stored(t, client, row)
		if state.ETag != res.ETags[row] || !state.Lineage.Has(res.WriteID) || row != "x" && p["limit"] != (Property{EDMInt64, "9007199254740993"}) {
			t.Errorf("%s: %v at %s with %v; the transaction said %s", row, p, state.ETag, state.Lineage, res.ETags[row])
		}
	}

	_, err = Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error {
		return errors.Join(tx.Put("z", account{Balance: 1}), tx.Delete("a"), tx.Insert("b", account{Balance: 1}))
	}, &TransactOptions{SendOptions: optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmNever}}) // b is not of azconc, and has only just been written
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if index, _, _ := azerr.Transaction(err); !ok || !errors.Is(err, optimistic.ErrExists) || conflict.Resource != "orders/p/b" || index != 2 {
		t.Errorf("insert of what exists: %v at %d", err, index)
	}
	if got := balances(t, client, "a", "z"); !slices.Equal(got, []int{70, -1}) {
		t.Errorf("a and z are %v after a transaction that failed", got)
	}

	// Keys with quotes, and as many entities as there can be.
	_, err = Transact(t.Context(), client, "o'brien's", func(_ context.Context, tx *Tx) error {
		for i := range 100 {
			if err := tx.Put(fmt.Sprintf("r'%d", i), account{Balance: i}); err != nil {
				return err
			}
		}
		return nil
	}, nil)
	if v, readErr := optimistic.Read(t.Context(), NewEntity[account](client, "o'brien's", "r'99"), nil); err != nil || readErr != nil || v.Value.Balance != 99 {
		t.Errorf("100 entities: %v, %+v, %v", err, v, readErr)
	}
}

// TestLostTransactionsOnAzurite moves money over a network that loses one response in five.
func TestLostTransactionsOnAzurite(t *testing.T) {
	emulated := azuritetest.Account(t)
	direct, lossy := tableOnAzurite(t, emulated, emulated.TableURL), lossyTable(t, emulated)
	optest.Insert(t, direct(), "a", `{"balance":1000}`)
	optest.Insert(t, direct(), "b", `{"balance":0}`)
	var mu sync.Mutex
	var wg sync.WaitGroup
	success, unknown, resolved := 0, 0, 0
	for range 4 {
		wg.Go(func() {
			for range 15 {
				res, err := Transact(context.Background(), lossy(), "p", move(1), &TransactOptions{Attempts: -1, Elapsed: time.Minute})
				mu.Lock()
				resolved += res.Resolved
				switch {
				case err == nil:
					success++
				case errors.Is(err, optimistic.ErrOutcomeUnknown):
					unknown++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	got := balances(t, direct(), "a", "b")
	if got[0]+got[1] != 1000 || got[1] < success || got[1] > success+unknown || resolved == 0 {
		t.Errorf("balances %v after %d successes and %d unknown; %d lost responses resolved", got, success, unknown, resolved)
	}
}
