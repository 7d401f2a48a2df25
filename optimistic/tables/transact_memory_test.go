package tables

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// unread writes to a row that the transaction has not read.
var unread = map[string]func(*Tx, string, any) error{"Merge": (*Tx).Merge, "Upsert": (*Tx).Upsert, "Put": (*Tx).Put, "Replace": (*Tx).Replace}

// TestNoWriteMakesAnEntityForgetItsOperations: those to unread rows, and those over a base that was not read, replaced or dropped
// what the entity remembered, so that a rerun was carried out again, and the next conflict could not be judged.
func TestNoWriteMakesAnEntityForgetItsOperations(t *testing.T) {
	type write struct {
		send     func(ctx context.Context, row string) error
		requests int
	}
	s, client := bank(t)
	writes := map[string]write{}
	for name, to := range unread {
		writes[name] = write{func(ctx context.Context, row string) error {
			_, err := Transact(ctx, client, "p", func(_ context.Context, tx *Tx) error {
				return to(tx, row, map[string]any{"owner": "Ann", "balance": 7})
			}, nil)
			return err
		}, 2}
	}
	for name, mode := range map[string]Mode{"over the version, some properties": MergeGiven, "over the version, all properties": ReplaceGiven} {
		writes[name] = write{func(ctx context.Context, row string) error {
			_, state := stored(t, client, row)
			target := NewEntity[account](client, "p", row)
			target.Mode = mode
			base := &optimistic.Version[account]{State: optimistic.State{Exists: true, ETag: state.ETag}}
			_, err := optimistic.Replace(ctx, target, base, account{Balance: 7}, nil)
			return err
		}, 3} // one is that of the test
		writes["*: "+name] = write{func(ctx context.Context, row string) error {
			target := NewEntity[account](client, "p", row)
			target.Mode = mode
			base := &optimistic.Version[account]{State: optimistic.State{Exists: true, ETag: azcore.ETagAny}}
			_, err := optimistic.Replace(ctx, target, base, account{Balance: 7}, &optimistic.WriteOptions{OperationID: "another"})
			return err
		}, 2}
	}
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			optest.Insert(t, client, name, `{"balance":100}`)
			target, once := NewEntity[account](client, "p", name), &optimistic.UpdateOptions{OperationID: "A"}
			spend := func(_ context.Context, a *account) error { a.Balance--; return nil }
			if _, err := optimistic.Update(t.Context(), target, spend, once); err != nil {
				t.Fatal(err)
			}
			s.Reset()
			if err := w.send(t.Context(), name); err != nil || s.Requests() != w.requests {
				t.Errorf("%d requests, %v", s.Requests(), err)
			}
			p, state := stored(t, client, name)
			if p["balance"].Value != "7" || len(state.Lineage.Writes) == 0 {
				t.Errorf("it is %v with %v", p, state.Lineage)
			}
			if res, err := optimistic.Update(t.Context(), target, spend, once); err != nil || !res.AlreadyApplied {
				t.Errorf("again: %+v, %v", res, err)
			}
		})
	}
}

// TestATransactionIsNotRepeatedUnderItsID: its writes to unread rows were sent again, and overwrote what came after.
func TestATransactionIsNotRepeatedUnderItsID(t *testing.T) {
	for name, to := range unread {
		for row, balance := range map[string]int{"a": 7, "c": 100} { // c is left as it was
			s, client := bank(t)
			run := func() TransactResult {
				s.Reset()
				res, err := Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error {
					return to(tx, row, map[string]any{"balance": balance})
				}, &TransactOptions{OperationID: "move-17"})
				if err != nil {
					t.Fatal(name, err)
				}
				return res
			}
			billed(t, s, run(), 2)
			_, err := Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error { return tx.Merge(row, map[string]any{"balance": 8}) }, nil)
			if err != nil {
				t.Fatal(name, err)
			}
			again := run()
			if billed(t, s, again, 1); !again.AlreadyApplied || again.Changed {
				t.Errorf("%s: %+v", name, again)
			}
			if got := balances(t, client, row); got[0] != 8 {
				t.Errorf("%s: the rerun wrote %d over what came after", name, got[0])
			}
		}
	}
}

// TestATransactionThatWasCarriedOutIsNotReportedAsRefused: the last response to it, a refusal, was returned in place of what a look
// had proved.
func TestATransactionThatWasCarriedOutIsNotReportedAsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := bank(t)
		move := func(ctx context.Context) (TransactResult, error) {
			return Transact(ctx, client, "p", move(10), &TransactOptions{OperationID: "move-17"})
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Writes, Count: 1})
		go func() {
			bubble.Sleep(time.Microsecond) // the first try is lost, and waits to be sent again
			if res, err := move(context.Background()); err != nil || !res.Changed {
				t.Errorf("the other: %+v, %v", res, err)
			}
		}()
		if res, err := move(t.Context()); err != nil || !res.AlreadyApplied || res.Changed {
			t.Errorf("%+v, %v", res, err)
		}
		if got := balances(t, client, "a", "b"); got[0] != 90 {
			t.Errorf("balances %v", got)
		}
	})
}

// TestARerunUnderALaterHolderExcludesTheEarlier: it found the operation carried out, stored no fence, and the earlier holder, which had
// been paused, went on writing.
func TestARerunUnderALaterHolderExcludesTheEarlier(t *testing.T) {
	s, client := bank(t)
	early, late := &optest.Holder{Token: 7}, &optest.Holder{Token: 8}
	for i, want := range []struct {
		holder   *optest.Holder
		requests int
	}{{early, 4}, {late, 3}, {late, 2}} { // the fence, a, b, the transaction; the fence, the fence, its write; the fence twice
		s.Reset()
		res, err := Transact(t.Context(), client, "p", move(10), &TransactOptions{OperationID: "move-17", Holder: want.holder})
		if err != nil || res.AlreadyApplied != (i > 0) || res.Changed == (i > 0) {
			t.Fatalf("run %d: %+v, %v", i, res, err)
		}
		billed(t, s, res, want.requests)
	}
	if _, err := Transact(t.Context(), client, "p", move(1), &TransactOptions{Holder: early}); !errors.Is(err, optimistic.ErrFenced) {
		t.Errorf("the earlier holder: %v", err)
	}
	if got := balances(t, client, "a"); got[0] != 90 {
		t.Errorf("a is %d", got[0])
	}
}
