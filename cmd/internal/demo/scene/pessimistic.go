package scene

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/manual"
	"github.com/azconc/azconc/pessimistic/shared"
)

const shortest = 15 * time.Second // the shortest lease

// take acquires a lease that nothing renews.
func take(ctx context.Context, r pessimistic.Resource, id *string) func() error {
	return func() error {
		got, err := manual.Acquire(ctx, r, &manual.AcquireOptions{Duration: shortest})
		*id = got.ID
		return err
	}
}

func leaseScene(ctx context.Context, s *stage) {
	s.page(ctx)
	a, b := s.client("holder"), s.client("other")
	var id, none string
	s.ok(a, "acquires the lease", "manual.Acquire", "azconc blob lease acquire @/page.txt --duration 15s", take(ctx, pessimistic.NewBlob(a.blob("page.txt")), &id))
	s.refused(b, "acquires it too", "manual.Acquire", "azconc blob lease acquire @/page.txt --duration 15s", pessimistic.ErrHeld, take(ctx, pessimistic.NewBlob(b.blob("page.txt")), &none))
	s.refused(b, "writes without the lease", uploadCall, putCommand, nil, b.upload(ctx, "page.txt", "without", optimistic.Conditions{}, nil))
	s.ok(b, "reads without the lease", downloadCall, getCommand, b.download(ctx, "page.txt", optimistic.Conditions{}, nil))
	s.ok(a, "writes with the lease", uploadCall, putCommand+" --lease-id ID", func() error {
		return a.upload(ctx, "page.txt", "with", optimistic.Conditions{LeaseID: id}, nil)()
	})
	s.ok(a, "releases the lease", "manual.Release", "azconc blob lease release @/page.txt --lease-id ID", func() error {
		return manual.Release(ctx, pessimistic.NewBlob(a.blob("page.txt")), id, nil)
	})
	s.ok(b, "writes", uploadCall, putCommand, b.upload(ctx, "page.txt", "after", optimistic.Conditions{}, nil))
}

func leaseExpired(ctx context.Context, s *stage) {
	s.page(ctx)
	a, b := s.client("holder"), s.client("other")
	var id string
	s.ok(a, "acquires the lease for 15 s, and renews it not", "manual.Acquire", "azconc blob lease acquire @/page.txt --duration 15s", take(ctx, pessimistic.NewBlob(a.blob("page.txt")), &id))
	s.pause(ctx, a, shortest+time.Second)
	s.ok(b, "writes without a lease", uploadCall, putCommand, b.upload(ctx, "page.txt", "since", optimistic.Conditions{}, nil))
	s.refused(a, "writes with the expired lease", uploadCall, putCommand+" --lease-id ID", nil, func() error {
		return a.upload(ctx, "page.txt", "late", optimistic.Conditions{LeaseID: id}, nil)()
	})
}

func containerLease(ctx context.Context, s *stage) {
	s.page(ctx)
	a, b := s.client("holder"), s.client("other")
	var id string
	s.ok(a, "acquires the container's lease", "pessimistic.NewContainer", "azconc container lease acquire @ --duration 15s", take(ctx, pessimistic.NewContainer(a.container()), &id))
	s.ok(b, "writes a blob in it: the lease does not mind", uploadCall, putCommand, b.upload(ctx, "page.txt", "more", optimistic.Conditions{}, nil))
	s.refused(b, "deletes the container", "settings.DeleteContainer", "azconc container delete @", nil, func() error {
		_, err := b.container().Delete(ctx, nil)
		return err
	})
	s.ok(a, "deletes the container with the lease", "settings.DeleteContainer", "azconc container delete @ --lease-id ID", func() error {
		_, err := a.container().Delete(ctx, &container.DeleteOptions{AccessConditions: &container.AccessConditions{LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: &id}}})
		if err == nil {
			s.ends = nil // nothing is left to delete
		}
		return err
	})
}

func leaseStrategies(ctx context.Context, s *stage) {
	s.box(ctx)
	a, b := s.client("client 1"), s.client("client 2")
	for i, strategy := range []shared.Strategy{shared.ExclusiveWriteSharedRead, shared.ExclusiveWriteExclusiveRead, shared.SharedWriteExclusiveRead} {
		name := []string{"shared-read", "exclusive", "shared-write"}[i]
		side := func(c *client) (st *shared.Strategist, err error) {
			locker, err := c.locker()
			if err != nil {
				return nil, err
			}
			return shared.NewStrategist(locker, name, strategy, nil)
		}
		var first shared.Access
		s.ok(a, string(strategy)+": begins to write", "shared.NewStrategist", "azconc lock run @/"+name+" -- CMD", func() error {
			st, err := side(a)
			if err == nil {
				first, err = st.Write(ctx, nil)
			}
			return err
		})
		ask := s.refused
		want := pessimistic.ErrHeld
		if strategy == shared.SharedWriteExclusiveRead {
			ask = func(c *client, does, library, command string, _ error, run func() error) {
				s.ok(c, does, library, command, run)
			}
		}
		ask(b, string(strategy)+": writes too", "shared.NewStrategist", "azconc lock run @/"+name+" --no-wait -- CMD", want, func() error {
			st, err := side(b)
			if err != nil {
				return err
			}
			second, err := st.Write(ctx, &pessimistic.LockOptions{NoWait: true})
			if err == nil {
				err = second.Release(ctx)
			}
			return err
		})
		s.ok(a, string(strategy)+": ends", "shared.Access", "azconc lock run @/"+name+" -- CMD", func() error { return first.Release(ctx) })
		if s.err != nil && first != nil {
			s.err = errors.Join(s.err, first.Release(context.WithoutCancel(ctx)))
		}
	}
}
