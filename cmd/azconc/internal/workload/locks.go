package workload

import (
	"context"
	"fmt"

	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
)

// lockers returns a Locker for each client, the same for all with Shared.
func (s *Site) lockers(c Cell, m *meter) ([]*pessimistic.Locker, error) {
	all := make([]*pessimistic.Locker, c.Clients)
	for i := range all {
		if c.Way == Shared && i > 0 {
			all[i] = all[0]
			continue
		}
		box, err := s.container(m)
		if err != nil {
			return nil, err
		}
		if all[i], err = pessimistic.NewLocker(box, &pessimistic.LockerOptions{Owner: fmt.Sprintf("client %d", i)}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// firstHold acquires a new lock once: its first holder waits for the next second of the service's clock, which is not measured.
func (s *Site) firstHold(ctx context.Context, name string) error {
	box, err := s.container(nil)
	if err != nil {
		return err
	}
	locker, err := pessimistic.NewLocker(box, &pessimistic.LockerOptions{Owner: "preparation"})
	if err != nil {
		return err
	}
	return locker.Do(ctx, name, nil, func(context.Context, *pessimistic.Hold) error { return nil })
}

// locks prepares Lock.
func (s *Site) locks(ctx context.Context, c Cell, m *meter) (*crowd, error) {
	name := s.cell()
	all := &crowd{}
	if c.Way == Lease {
		if _, err := s.put(ctx, name); err != nil {
			return nil, err
		}
		for range c.Clients {
			client, err := s.blob(m, name)
			if err != nil {
				return nil, err
			}
			all.clients = append(all.clients, func(ctx context.Context) error {
				return underLease(ctx, client, func(context.Context, *string) error { return nil })
			})
		}
		return all, nil
	}
	if err := s.firstHold(ctx, name); err != nil {
		return nil, err
	}
	lockers, err := s.lockers(c, m)
	if err != nil {
		return nil, err
	}
	for _, locker := range lockers {
		all.clients = append(all.clients, func(ctx context.Context) error {
			return locker.Do(ctx, name, nil, func(context.Context, *pessimistic.Hold) error { return nil })
		})
	}
	return all, nil
}

// tableLocks prepares TableLock: the lock of the table and a transaction that carries its fence, beside the lease of a blob and a
// conditional write.
func (s *Site) tableLocks(ctx context.Context, c Cell, m *meter) (*crowd, error) {
	row := s.cell()
	check, err := s.insert(ctx, row)
	if err != nil {
		return nil, err
	}
	all := &crowd{check: check}
	lockers, err := s.lockers(c, m)
	if err != nil {
		return nil, err
	}
	name, err := lockers[0].TableLock(s.table("data"), row)
	if err != nil {
		return nil, err
	}
	if c.Way == Lease {
		_, err = s.put(ctx, row)
	} else {
		err = s.firstHold(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	for _, locker := range lockers {
		service, err := s.tables(m)
		if err != nil {
			return nil, err
		}
		table := service.NewClient(s.table("data"))
		if c.Way == Lease {
			commit, err := s.leasedEntity(m, table, row)
			if err != nil {
				return nil, err
			}
			all.clients = append(all.clients, commit)
			continue
		}
		all.clients = append(all.clients, func(ctx context.Context) error {
			return locker.Do(ctx, name, nil, func(ctx context.Context, h *pessimistic.Hold) error {
				_, err := tables.Transact(ctx, table, partition, func(ctx context.Context, tx *tables.Tx) error {
					var n counter
					if _, err := tx.Get(ctx, row, &n); err != nil {
						return err
					}
					n.N++
					return tx.Merge(row, n)
				}, &tables.TransactOptions{Holder: h})
				return err
			})
		})
	}
	return all, nil
}
