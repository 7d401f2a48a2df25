package bench

import (
	"context"
	"fmt"

	"github.com/azconc/azconc/pessimistic"
)

// locks prepares the clients of lock: they hold a lock, or the lease of a blob, and do nothing under it.
func (s *site) locks(ctx context.Context, c cell, m *meter) (work, error) {
	if err := s.create(ctx, "container"); err != nil {
		return work{}, err
	}
	locker := func(m *meter, owner string) (*pessimistic.Locker, error) {
		box, err := s.container(m)
		if err != nil {
			return nil, err
		}
		return pessimistic.NewLocker(box, &pessimistic.LockerOptions{Owner: owner})
	}
	hold := func(ctx context.Context, k *pessimistic.Locker) error {
		return k.Do(ctx, c.name(), nil, func(context.Context, *pessimistic.Hold) error { return nil })
	}
	if c.Way == leased {
		b, err := s.blob(c, nil)
		if err == nil {
			err = write(ctx, b, counter{}, nil, nil)
		}
		if err != nil {
			return work{}, err
		}
	} else { // the first holder of a lock waits for the next second of the service's clock, which is not measured
		k, err := locker(nil, "preparation")
		if err == nil {
			err = hold(ctx, k)
		}
		if err != nil {
			return work{}, err
		}
	}
	var clients []func(context.Context) error
	var k *pessimistic.Locker
	for i := range c.Clients {
		b, err := s.blob(c, m)
		if err == nil && (i == 0 || c.Way != shared) {
			k, err = locker(m, fmt.Sprintf("client %d", i))
		}
		if err != nil {
			return work{}, err
		}
		mine := k
		clients = append(clients, func(ctx context.Context) error {
			if c.Way == leased {
				return underLease(ctx, b, func(*string) error { return nil })
			}
			return hold(ctx, mine)
		})
	}
	return work{run: together(clients)}, nil
}
