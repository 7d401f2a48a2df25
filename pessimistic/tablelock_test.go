package pessimistic

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/fence"
)

func TestATableLockIsForTheTableOrAPartition(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		var names []string
		for _, of := range [][2]string{{"orders", ""}, {"orders", "eu/west 1"}, {"orders", "eu"}} {
			name, err := k.TableLock(of[0], of[1])
			if err != nil {
				t.Fatal(err)
			}
			h, err := k.TryLock(t.Context(), name)
			if err != nil {
				t.Errorf("%v: %v, though it is another lock", of, err)
				continue
			}
			if _, err := k.TryLock(t.Context(), name); !errors.Is(err, ErrHeld) {
				t.Errorf("%v: locked twice: %v", of, err)
			}
			names = append(names, h.Name())
			defer mustRelease(t, h.lease)
		}
		if want := []string{"table/orders", "table/orders/eu%2Fwest%201", "table/orders/eu"}; !slices.Equal(names, want) {
			t.Errorf("names %q, want %q", names, want)
		}
		for _, bad := range [][2]string{{"", "p"}, {"t", strings.Repeat("/", 500)}} {
			if _, err := k.TableLock(bad[0], bad[1]); err == nil {
				t.Errorf("%.20q: no error", bad)
			}
		}
	})
}

func TestTheFenceOfATableLockRejectsAnEarlierHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		table := w.Service.Table("orders")
		k := w.lockerOf(nil)
		lock, err := k.TableLock("orders", "")
		if err != nil {
			t.Fatal(err)
		}
		put := func(ctx context.Context, h *Hold, row string) error {
			_, err := tables.Transact(ctx, table, "p", func(_ context.Context, tx *tables.Tx) error {
				return tx.Insert(row, map[string]int{"n": 1})
			}, &tables.TransactOptions{Holder: h})
			return err
		}
		stale, err := k.Lock(t.Context(), lock, nil)
		if err != nil {
			t.Fatal(err)
		}
		crash(stale.lease) // and goes on writing
		err = w.direct(nil).Do(t.Context(), lock, nil, func(ctx context.Context, h *Hold) error {
			if err := put(ctx, stale, "before"); err != nil && !errors.Is(err, ErrLost) {
				t.Errorf("the lease is over, and the write is refused by %v", err)
			}
			return put(ctx, h, "mine")
		})
		if err != nil {
			t.Fatal(err)
		}
		blind := fence.Holder(unguarded{stale})
		_, err = tables.Transact(t.Context(), table, "p", func(_ context.Context, tx *tables.Tx) error {
			return tx.Insert("after", map[string]int{"n": 1})
		}, &tables.TransactOptions{Holder: blind})
		if !errors.Is(err, fence.ErrFenced) {
			t.Errorf("err = %v, want ErrFenced", err)
		}
		if rows := rowsOf(t, table); !slices.Equal(rows, []string{"azconcfence", "mine"}) {
			t.Errorf("rows %q", rows)
		}
	})
}

// unguarded is a holder that does not check its clock.
type unguarded struct{ *Hold }

func (unguarded) Guard(context.Context) error { return nil }

func rowsOf(t *testing.T, table *aztables.Client) (rows []string) {
	t.Helper()
	pages := table.NewListEntitiesPager(nil)
	for pages.More() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range page.Entities {
			_, after, _ := strings.Cut(string(raw), `"RowKey":"`)
			row, _, _ := strings.Cut(after, `"`)
			rows = append(rows, row)
		}
	}
	return rows
}
