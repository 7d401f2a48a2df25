package tables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// account is the value of an entity; the tests move money between accounts.
type account struct {
	Balance int    `json:"balance"`
	Owner   string `json:"owner,omitempty"`
}

// bank returns a service with a table of accounts a, b and c in partition p, with 100 each.
func bank(t *testing.T) (*aztest.Service, *aztables.Client) {
	t.Helper()
	s := aztest.New(nil)
	client := s.Table("bank")
	for _, row := range []string{"a", "b", "c"} {
		optest.Insert(t, client, row, `{"balance":100,"limit":"9007199254740993","limit@odata.type":"Edm.Int64"}`)
	}
	s.Reset()
	return s, client
}

// move moves amount from a to b.
func move(amount int) func(context.Context, *Tx) error {
	return func(ctx context.Context, tx *Tx) error {
		var from, to account
		if _, err := tx.Get(ctx, "a", &from); err != nil {
			return err
		}
		if _, err := tx.Get(ctx, "b", &to); err != nil {
			return err
		}
		from.Balance -= amount
		to.Balance += amount
		if err := tx.Update("a", from); err != nil {
			return err
		}
		return tx.Update("b", to)
	}
}

func balances(t *testing.T, client *aztables.Client, rows ...string) (all []int) {
	t.Helper()
	for _, row := range rows {
		v, err := optimistic.Read(context.Background(), NewEntity[account](client, "p", row), nil)
		if err != nil {
			all = append(all, -1)
			continue
		}
		all = append(all, v.Value.Balance)
	}
	return all
}

func billed(t *testing.T, s *aztest.Service, res TransactResult, want int) {
	t.Helper()
	optest.Requests(t, s, res.Result, want)
}

func TestATransactionCostsItsReadsAndOneWrite(t *testing.T) {
	s, client := bank(t)
	res, err := Transact(t.Context(), client, "p", move(30), nil)
	if err != nil || !res.Changed || res.Attempts != 1 {
		t.Fatalf("Transact = %+v, %v", res, err)
	}
	billed(t, s, res, 3)
	if got := optest.Ops(s)[2]; got != "Entity Group Transaction" {
		t.Errorf("sent %s", got)
	}
	if got := balances(t, client, "a", "b", "c"); !slices.Equal(got, []int{70, 130, 100}) {
		t.Errorf("balances %v", got)
	}
	for _, row := range []string{"a", "b"} {
		p, state := stored(t, client, row)
		if res.ETags[row] != state.ETag || !state.Lineage.Has(res.WriteID) || len(state.Lineage.Writes) != 1 {
			t.Errorf("%s is at %s with %v, the transaction said %s and %s", row, state.ETag, state.Lineage, res.ETags[row], res.WriteID)
		}
		if p["limit"] != (Property{EDMInt64, "9007199254740993"}) {
			t.Errorf("what the struct does not name became %v", p["limit"])
		}
	}
	if len(res.ETags) != 2 {
		t.Errorf("ETags %v", res.ETags)
	}
}

func TestEveryOperationOfATransaction(t *testing.T) {
	s, client := bank(t)
	optest.Insert(t, client, "d", `{"balance":1,"owner":"x"}`)
	optest.Insert(t, client, "e", `{"balance":1,"owner":"x"}`)
	s.Reset()
	res, err := Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
		var a account
		if found, err := tx.Get(ctx, "a", &a); err != nil || !found || a.Balance != 100 {
			return fmt.Errorf("a: %v %v %v", a, found, err)
		}
		return errors.Join(
			tx.Delete("a"),                       // read: on condition of its version
			tx.Delete("b"),                       // not read: on condition that it is there
			tx.Replace("c", account{Balance: 3}), // drops what it does not name
			tx.Merge("d", map[string]any{"balance": int32(4)}), // keeps it
			tx.Upsert("e", Properties{"note": {EDMString, "e"}}),
			tx.Upsert("f", Properties{"note": {EDMString, "f"}}),
			tx.Put("g", account{Balance: 7, Owner: "g"}),
			tx.Insert("h", map[string]int64{"balance": 8}),
		)
	}, nil)
	if err != nil {
		t.Fatalf("%+v, %v\n%v", res, err, s.Log())
	}
	billed(t, s, res, 7) // a; c, d, e, f and g, which the change has not read; the transaction
	got := map[string]Properties{}
	for _, row := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if p, state := stored(t, client, row); state.Exists {
			got[row] = p
			if !state.Lineage.Has(res.WriteID) || res.ETags[row] != state.ETag {
				t.Errorf("%s: lineage %v, ETag %s and %s", row, state.Lineage, state.ETag, res.ETags[row])
			}
		}
	}
	want := map[string]Properties{
		"c": {"balance": {EDMInt32, "3"}},
		"d": {"balance": {EDMInt32, "4"}, "owner": {EDMString, "x"}},
		"e": {"balance": {EDMInt32, "1"}, "owner": {EDMString, "x"}, "note": {EDMString, "e"}},
		"f": {"note": {EDMString, "f"}},
		"g": {"balance": {EDMInt32, "7"}, "owner": {EDMString, "g"}},
		"h": {"balance": {EDMInt64, "8"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATransactionSeesItsOwnWrites(t *testing.T) {
	s, client := bank(t)
	res, err := Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
		see := func(row string, want int) error {
			var v account
			found, err := tx.Get(ctx, row, &v)
			if err == nil && (found != (want >= 0) || found && v.Balance != want) {
				err = fmt.Errorf("%s: %t %+v, want %d", row, found, v, want)
			}
			return err
		}
		return errors.Join(
			see("a", 100), tx.Update("a", account{Balance: 1}), see("a", 1), tx.Merge("a", account{Balance: 2}), see("a", 2),
			tx.Delete("a"), see("a", -1), tx.Insert("a", account{Balance: 3}), see("a", 3),
			see("new", -1), tx.Put("new", account{Balance: 4}), see("new", 4), tx.Upsert("new", account{Balance: 5}),
			tx.Insert("blind", account{Balance: 6}), see("blind", 6), tx.Merge("blind", account{Owner: "me"}), tx.Update("blind", account{Balance: 7}),
			tx.Delete("b"), see("b", -1),
		)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	billed(t, s, res, 3) // a and new are read, blind and b are not
	if got := balances(t, client, "a", "new", "blind", "b"); !slices.Equal(got, []int{3, 5, 7, -1}) {
		t.Errorf("balances %v", got)
	}
	if p, _ := stored(t, client, "a"); len(p) != 1 {
		t.Errorf("deleted and inserted, a still holds %v", p)
	}
}

// TestReadsAreAsserted: an entity that is only read decides as much as one that is written.
func TestReadsAreAsserted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := bank(t)
		_, before := stored(t, client, "c")
		s.Reset()
		runs := 0
		ifC := func(read func(*Tx, context.Context, string, any) (bool, error)) func(context.Context, *Tx) error {
			return func(ctx context.Context, tx *Tx) error {
				var c account
				if _, err := read(tx, ctx, "c", &c); err != nil {
					return err
				}
				if runs++; runs == 1 {
					if _, err := optimistic.Update(ctx, NewEntity[account](client, "p", "c"), func(_ context.Context, v *account) error { v.Balance++; return nil }, nil); err != nil {
						return err
					}
				}
				return tx.Merge("a", account{Balance: c.Balance + 1})
			}
		}
		res, err := Transact(t.Context(), client, "p", ifC((*Tx).Get), nil)
		if err != nil || res.Conflicts != 1 || runs != 2 || res.Requests != 6 {
			t.Fatalf("Get: %+v, %v in %d runs\n%v", res, err, runs, s.Log())
		}
		if _, after := stored(t, client, "c"); after.ETag != res.ETags["c"] || after.ETag == before.ETag || !after.Lineage.Has(res.WriteID) {
			t.Errorf("c is at %s with %v; reading it is a write, and the result has %v", after.ETag, after.Lineage, res.ETags)
		}
		runs = 0
		res, err = Transact(t.Context(), client, "p", ifC((*Tx).Peek), nil)
		if err != nil || res.Conflicts != 0 || runs != 1 {
			t.Errorf("Peek: %+v, %v in %d runs", res, err, runs)
		}
		if _, asserted := res.ETags["c"]; asserted {
			t.Error("what was peeked at has been written")
		}
	})
}

func TestAnAbsenceThatCannotBeAssertedIsRefused(t *testing.T) {
	s, client := bank(t)
	ifAbsent := func(ctx context.Context, tx *Tx) error {
		if found, err := tx.Get(ctx, "x", nil); err != nil || found {
			return err
		}
		return tx.Merge("a", account{Balance: 1})
	}
	_, err := Transact(t.Context(), client, "p", ifAbsent, nil)
	if err == nil || !strings.Contains(err.Error(), "transact bank/p/x: it was read as absent") || s.Requests() != 2 {
		t.Errorf("without a guard: %v after %d requests", err, s.Requests())
	}
	s.Reset()
	res, err := Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
		if found, err := tx.Get(ctx, "x", nil); err != nil || found {
			return err
		}
		return tx.Insert("x", account{Balance: 1}) // absence that is ended by the transaction is asserted by it
	}, nil)
	if err != nil {
		t.Error(err)
	}
	billed(t, s, res, 2)
}

// TestAGuardStandsForAbsentRows: two transactions that each create what the other has found absent cannot both
// succeed.
func TestAGuardStandsForAbsentRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := bank(t)
		opts := &TransactOptions{Guard: "guard"}
		first := true
		var claim func(mine, theirs string) func(context.Context, *Tx) error
		claim = func(mine, theirs string) func(context.Context, *Tx) error {
			return func(ctx context.Context, tx *Tx) error {
				found, err := tx.Get(ctx, theirs, nil)
				if err != nil || found {
					return err
				}
				if mine == "x" && first {
					first = false
					if _, err := Transact(ctx, client, "p", claim("y", "x"), opts); err != nil {
						return err
					}
				}
				return tx.Insert(mine, account{Balance: 1})
			}
		}
		res, err := Transact(t.Context(), client, "p", claim("x", "y"), opts)
		if err != nil || res.Changed || res.Conflicts != 1 {
			t.Errorf("Transact = %+v, %v", res, err)
		}
		if got := balances(t, client, "x", "y"); !slices.Equal(got, []int{-1, 1}) {
			t.Errorf("x and y are %v, want y alone", got)
		}
		s, client := bank(t)
		if res, err = Transact(t.Context(), client, "p", move(1), opts); err != nil {
			t.Fatal(err)
		}
		billed(t, s, res, 4)
		if _, state := stored(t, client, "guard"); state.Exists {
			t.Error("a transaction that neither creates nor misses anything has written the guard")
		}
	})
}

// TestACreateIsSeenByWhoDependsOnAbsence: a transaction that creates an entity without having read it writes the guard too.
func TestACreateIsSeenByWhoDependsOnAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := bank(t)
		opts := &TransactOptions{Guard: "guard"}
		runs := 0
		res, err := Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
			found, err := tx.Get(ctx, "x", nil)
			if err != nil || found {
				return err
			}
			if runs++; runs == 1 {
				if _, err := Transact(ctx, client, "p", func(_ context.Context, tx *Tx) error { return tx.Insert("x", account{Balance: 1}) }, opts); err != nil {
					return err
				}
			}
			return tx.Insert("y", account{Balance: 1})
		}, opts)
		if err != nil || res.Changed || res.Conflicts != 1 {
			t.Errorf("Transact = %+v, %v", res, err)
		}
		if got := balances(t, client, "x", "y"); !slices.Equal(got, []int{1, -1}) {
			t.Errorf("x and y are %v, want x alone", got)
		}
	})
}

func TestAConflictRunsTheTransactionAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := bank(t)
		meddle := 3
		res, err := Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
			if err := move(10)(ctx, tx); err != nil {
				return err
			}
			if meddle--; meddle >= 0 {
				_, err := Transact(ctx, client, "p", move(1), nil)
				return err
			}
			return nil
		}, nil)
		if err != nil || res.Conflicts != 3 || res.Attempts != 4 || res.Requests != 4*3 || s.Requests() != 7*3 {
			t.Fatalf("%+v, %v, %d requests", res, err, s.Requests())
		}
		if got := balances(t, client, "a", "b"); !slices.Equal(got, []int{87, 113}) {
			t.Errorf("balances %v", got)
		}
	})
}

func TestAFinalConflictNamesTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := bank(t)
		stale := func(ctx context.Context, tx *Tx) error {
			if err := move(10)(ctx, tx); err != nil {
				return err
			}
			_, err := optimistic.Update(ctx, NewEntity[account](client, "p", "b"), func(_ context.Context, v *account) error { v.Balance++; return nil }, nil)
			return err
		}
		_, err := Transact(t.Context(), client, "p", stale, &TransactOptions{Attempts: 2})
		_, now := stored(t, client, "b")
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		if !ok || conflict.Resource != "bank/p/b" || conflict.Current != now.ETag || conflict.Base == "" || conflict.Reason != azerr.Changed || conflict.Attempts != 2 {
			t.Errorf("%v: %+v, b is at %s", err, conflict, now.ETag)
		}
		if index, code, ok := azerr.Transaction(err); !ok || index != 1 || code != "UpdateConditionNotSatisfied" {
			t.Errorf("the service's response: %d, %s, %t", index, code, ok)
		}

		bubble.Sleep(10 * time.Second) // a is by a writer outside azconc; its age proves the conflict
		s.Reset()
		res, err := Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error {
			return errors.Join(tx.Put("z", account{Balance: 1}), tx.Insert("a", account{Balance: 1}))
		}, nil)
		conflict, ok = errors.AsType[*optimistic.ConflictError](err)
		if !ok || !errors.Is(err, optimistic.ErrExists) || conflict.Resource != "bank/p/a" || conflict.Current == "" || res.Attempts != 1 {
			t.Errorf("insert of what exists: %+v, %v", res, err)
		}
		billed(t, s, res, 3) // z, the transaction, a
		for name, op := range map[string]func(*Tx) error{
			"merge":   func(tx *Tx) error { return tx.Merge("missing", account{}) },
			"replace": func(tx *Tx) error { return tx.Replace("missing", account{}) },
			"delete":  func(tx *Tx) error { return tx.Delete("missing") },
		} {
			_, err = Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error { return errors.Join(tx.Put("z", account{Balance: 1}), op(tx)) }, nil)
			missing, ok := errors.AsType[*optimistic.NotFoundError](err)
			if !ok || missing.Resource != "bank/p/missing" {
				t.Errorf("%s of what does not exist: %v", name, err)
			}
		}
		if got := balances(t, client, "z"); got[0] != -1 {
			t.Error("a transaction that failed has left something behind")
		}
	})
}

func TestAnOperationIsTransactedOnce(t *testing.T) {
	s, client := bank(t)
	opts := &TransactOptions{OperationID: "payment-7"}
	for i := range 3 {
		s.Reset()
		res, err := Transact(t.Context(), client, "p", move(10), opts)
		if err != nil || res.Changed != (i == 0) || res.AlreadyApplied != (i > 0) {
			t.Errorf("%d: %+v, %v", i, res, err)
		}
		billed(t, s, res, []int{3, 1, 1}[i])
	}
	if got := balances(t, client, "a", "b"); !slices.Equal(got, []int{90, 110}) {
		t.Errorf("balances %v", got)
	}
	// Without a read the insert meets the operation as a conflict.
	blind := func(_ context.Context, tx *Tx) error { return tx.Insert("receipt", account{Balance: 1}) }
	opts.OperationID = "receipt-7"
	for i := range 2 {
		res, err := Transact(t.Context(), client, "p", blind, opts)
		if err != nil || res.Changed != (i == 0) || res.AlreadyApplied != (i > 0) {
			t.Errorf("insert %d: %+v, %v", i, res, err)
		}
	}
}

func TestTransactWithoutLineage(t *testing.T) {
	_, client := bank(t)
	_, err := Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
		if _, err := tx.Get(ctx, "c", nil); err != nil { // asserted with a merge of nothing
			return err
		}
		return move(5)(ctx, tx)
	}, &TransactOptions{SendOptions: optimistic.SendOptions{NoLineage: true}})
	if got := balances(t, client, "a", "b"); err != nil || !slices.Equal(got, []int{95, 105}) {
		t.Errorf("%v, %v", got, err)
	}
	if p, state := stored(t, client, "c"); len(p) != 2 || len(state.Lineage.Writes) != 0 {
		t.Errorf("%v, %v", p, state)
	}
}

// TestAMergeIntoANewEntityIsSent: it follows writes of the same transaction to a row that was not read.
func TestAMergeIntoANewEntityIsSent(t *testing.T) {
	for name, write := range map[string]func(*Tx, string, any) error{"Insert": (*Tx).Insert, "Put": (*Tx).Put} {
		_, client := bank(t)
		_, err := Transact(t.Context(), client, "p", func(ctx context.Context, tx *Tx) error {
			return errors.Join(
				write(tx, "new", map[string]any{"balance": 1}),
				tx.Update("new", map[string]any{"balance": 2}),
				tx.Merge("new", map[string]any{"owner": "Ann"}),
			)
		}, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		v, err := optimistic.Read(t.Context(), NewEntity[account](client, "p", "new"), nil)
		if want := (account{2, "Ann"}); err != nil || v.Value != want {
			t.Errorf("%s: %+v, want %+v; %v", name, v, want, err)
		}
	}
}
