package workload

import (
	"context"
	"fmt"

	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
)

func (s *Site) locker(m *meter, owner string) (*pessimistic.Locker, error) {
	box, err := s.container(m)
	if err != nil {
		return nil, err
	}
	return pessimistic.NewLocker(box, &pessimistic.LockerOptions{Owner: owner})
}

// locks prepares Lock, and TableLock: a transaction that carries the fence of the table's lock, beside the lease of a blob and a
// conditional write.
func (s *Site) locks(ctx context.Context, c Cell, m *meter) (*crowd, error) {
	all, err := s.counter(ctx, c)
	if err != nil {
		return nil, err
	}
	locker, err := s.locker(nil, "preparation")
	if err != nil {
		return nil, err
	}
	name := s.cell()
	if c.Workload == Lock {
		all.check = nil // nothing is counted
	} else if name, err = locker.TableLock(s.table("data"), name); err != nil {
		return nil, err
	}
	if c.Way != Lease { // the first holder of a lock waits for the next second of the service's clock, which is not measured
		if err := locker.Do(ctx, name, nil, func(context.Context, *pessimistic.Hold) error { return nil }); err != nil {
			return nil, err
		}
	}
	for i := range c.Clients {
		p, err := s.place(m, c)
		if err != nil {
			return nil, err
		}
		if i == 0 || c.Way != Shared {
			if locker, err = s.locker(m, fmt.Sprintf("client %d", i)); err != nil {
				return nil, err
			}
		}
		mine := locker
		all.clients = append(all.clients, func(ctx context.Context) error {
			switch {
			case c.Workload == Lock && c.Way == Lease:
				return underLease(ctx, p.blob, func(context.Context, *string) error { return nil })
			case c.Way == Lease:
				return underLease(ctx, p.blob, p.try)
			}
			return mine.Do(ctx, name, nil, func(ctx context.Context, h *pessimistic.Hold) error {
				if c.Workload == Lock {
					return nil
				}
				return p.transact(ctx, h)
			})
		})
	}
	return all, nil
}

// transact increments the counter in an entity, with the fence of a hold.
func (p place) transact(ctx context.Context, h *pessimistic.Hold) error {
	_, err := tables.Transact(ctx, p.table, partition, func(ctx context.Context, tx *tables.Tx) error {
		var n counter
		if _, err := tx.Get(ctx, p.row, &n); err != nil {
			return err
		}
		n.N++
		return tx.Merge(p.row, n)
	}, &tables.TransactOptions{Holder: h})
	return err
}
