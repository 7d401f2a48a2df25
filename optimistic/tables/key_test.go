package tables

import (
	"context"
	"strings"
	"testing"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAKeyThatIsNotUTF8IsRefused: two keys that differ in such a byte were one entity, since each is stored as U+FFFD.
func TestAKeyThatIsNotUTF8IsRefused(t *testing.T) {
	s := aztest.New(nil)
	table := s.Table("t")
	optest.Insert(t, table, "r", `{"n":0}`)
	s.Reset()
	for _, keys := range [][2]string{{"p\xff", "r"}, {"p", "r\xff"}} {
		e := NewEntity[optest.Counter](table, keys[0], keys[1])
		change := func(put bool) func(context.Context, *Tx) error {
			return func(ctx context.Context, tx *Tx) error {
				if put {
					return tx.Put(keys[1], optest.Counter{})
				}
				_, err := tx.Get(ctx, keys[1], new(optest.Counter))
				return err
			}
		}
		for name, call := range map[string]func() error{
			"Read":         func() error { _, err := optimistic.Read(t.Context(), e, nil); return err },
			"Create":       func() error { _, err := optimistic.Create(t.Context(), e, optest.Counter{}, nil); return err },
			"Update":       func() error { _, err := optimistic.Update(t.Context(), e, optest.Increment, nil); return err },
			"Delete":       func() error { _, err := optimistic.Delete(t.Context(), e, optimistic.State{}, nil); return err },
			"Upsert":       func() error { _, err := Upsert(t.Context(), e, optest.Counter{}, nil); return err },
			"Transact Get": func() error { _, err := Transact(t.Context(), table, keys[0], change(false), nil); return err },
			"Transact Put": func() error { _, err := Transact(t.Context(), table, keys[0], change(true), nil); return err },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), "is not UTF-8") {
				t.Errorf("%s of %q: %v", name, keys, err)
			}
		}
	}
	if s.Requests() != 0 {
		t.Errorf("sent %v", s.Log())
	}
}
