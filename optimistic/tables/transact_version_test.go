package tables

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestDeleteVersionDeletesOnlyThatVersion(t *testing.T) {
	s, client := bank(t)
	_, a := stored(t, client, "a")
	_, b := stored(t, client, "b")
	remove := func(a, b azcore.ETag) (TransactResult, error) {
		s.Reset()
		return Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error {
			return errors.Join(tx.DeleteVersion("a", a), tx.DeleteVersion("b", b))
		}, &TransactOptions{Attempts: 1})
	}
	_, err := remove(a.ETag, a.ETag)
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if !ok || conflict.Resource != "bank/p/b" || conflict.Base != a.ETag {
		t.Errorf("b is at another version: %v", err)
	}
	if got := balances(t, client, "a", "b"); got[0] == -1 || got[1] == -1 {
		t.Errorf("a transaction that failed has deleted: %v", got)
	}
	res, err := remove(a.ETag, b.ETag)
	if err != nil {
		t.Fatal(err)
	}
	billed(t, s, res, 1)
	if got := balances(t, client, "a", "b"); got[0] != -1 || got[1] != -1 {
		t.Errorf("they are still there: %v", got)
	}
	for name, change := range map[string]func(context.Context, *Tx) error{
		"no version":  func(_ context.Context, tx *Tx) error { return tx.DeleteVersion("c", "") },
		"unquoted":    func(_ context.Context, tx *Tx) error { return tx.DeleteVersion("c", "0x8D") },
		"any version": func(_ context.Context, tx *Tx) error { return tx.DeleteVersion("c", azcore.ETagAny) },
		"read before": func(ctx context.Context, tx *Tx) error {
			_, err := tx.Get(ctx, "c", nil)
			return errors.Join(err, tx.DeleteVersion("c", a.ETag))
		},
		"written before": func(_ context.Context, tx *Tx) error {
			return errors.Join(tx.Put("c", account{}), tx.DeleteVersion("c", a.ETag))
		},
	} {
		s.Reset()
		if _, err := Transact(t.Context(), client, "p", change, nil); err == nil || slices.ContainsFunc(s.Log(), func(r aztest.Request) bool { return aztest.Writes(&r) }) {
			t.Errorf("%s: %v\n%v", name, err, s.Log())
		}
	}
}

// TestAnEntityInPlaceOfADeletedVersionKeepsNothingOfIt: what the version held is not known to the transaction.
func TestAnEntityInPlaceOfADeletedVersionKeepsNothingOfIt(t *testing.T) {
	for name, value := range map[string]Properties{"some properties": {"owner": {EDMString, "Ann"}}, "none": {}} {
		_, client := bank(t)
		target := NewEntity[Properties](client, "p", "a")
		v, err := optimistic.Read(t.Context(), target, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Transact(t.Context(), client, "p", func(_ context.Context, tx *Tx) error {
			return errors.Join(tx.DeleteVersion("a", v.ETag), tx.Insert("a", value))
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v, err = optimistic.Read(t.Context(), target, nil); err != nil || !maps.Equal(v.Value, value) {
			t.Errorf("%s: the entity is %v, want %v; %v", name, v.Value, value, err)
		}
	}
}
