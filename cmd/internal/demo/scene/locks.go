package scene

import (
	"context"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/manual"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/fence"
)

const (
	shortest       = 15 * time.Second // the shortest lease
	acquireCall    = "manual.Acquire"
	acquireCommand = "azconc blob lease acquire @/page.txt --duration 15s"
)

// take acquires a lease that nothing renews.
func (c *client) take(r pessimistic.Resource, id *string) func() error {
	return func() error {
		got, err := manual.Acquire(c.ctx, r, &manual.AcquireOptions{Duration: shortest})
		*id = got.ID
		return err
	}
}

func leaseScene(s *stage) {
	s.page()
	a, b := s.client("holder"), s.client("other")
	var lease blobs.UploadOptions
	var none string
	s.ok(a, "acquires the lease", acquireCall, acquireCommand, a.take(pessimistic.NewBlob(a.blob("page.txt")), &lease.Conditions.LeaseID))
	s.refused(b, "acquires it too", acquireCall, acquireCommand, pessimistic.ErrHeld, b.take(pessimistic.NewBlob(b.blob("page.txt")), &none))
	s.refused(b, "writes without the lease", uploadCall, putCommand, nil, b.upload("page.txt", "without", nil))
	s.ok(b, "reads without the lease", readCall, getCommand, b.read(new(*optimistic.Version[[]byte])))
	s.ok(a, "writes with the lease", uploadCall, putCommand+" --lease-id ID", a.upload("page.txt", "with", &lease))
	s.ok(a, "releases the lease", "manual.Release", "azconc blob lease release @/page.txt --lease-id ID", func() error {
		return manual.Release(s.ctx, pessimistic.NewBlob(a.blob("page.txt")), lease.Conditions.LeaseID, nil)
	})
	s.ok(b, "writes", uploadCall, putCommand, b.upload("page.txt", "after", nil))
}

func containerLease(s *stage) {
	s.page()
	a, b := s.client("holder"), s.client("other")
	var lease settings.DeleteContainerOptions
	s.ok(a, "acquires the container's lease", "pessimistic.NewContainer", "azconc container lease acquire @ --duration 15s", a.take(pessimistic.NewContainer(a.container()), &lease.Conditions.LeaseID))
	s.ok(b, "writes a blob in it: the lease does not mind", uploadCall, putCommand, b.upload("page.txt", "more", nil))
	s.refused(b, "deletes the container", "settings.DeleteContainer", "azconc container delete @", nil, func() error {
		return only(settings.DeleteContainer(s.ctx, b.container(), nil))
	})
	s.ok(a, "deletes the container with the lease", "settings.DeleteContainer", "azconc container delete @ --lease-id ID", func() error {
		return only(settings.DeleteContainer(s.ctx, a.container(), &lease))
	})
	s.ends = nil // nothing is left to delete
}

func leaseStrategies(s *stage) {
	s.box()
	a, b := s.client("client 1"), s.client("client 2")
	for i, strategy := range []shared.Strategy{shared.ExclusiveWriteSharedRead, shared.ExclusiveWriteExclusiveRead, shared.SharedWriteExclusiveRead} {
		name := []string{"shared-read", "exclusive", "shared-write"}[i]
		command := "azconc lock run @/" + name + " --no-wait -- CMD"
		var first, second shared.Access
		write := func(c *client, into *shared.Access) func() error {
			return func() error {
				st, err := shared.NewStrategist(c.locker(), name, strategy, nil)
				c.must(err)
				*into, err = st.Write(c.ctx, &pessimistic.LockOptions{NoWait: true})
				return err
			}
		}
		s.ok(a, string(strategy)+": writes", "shared.NewStrategist", command, write(a, &first))
		if strategy == shared.SharedWriteExclusiveRead {
			s.ok(b, string(strategy)+": writes too", "shared.NewStrategist", command, write(b, &second))
			s.ok(b, string(strategy)+": has written", "shared.Access", command, func() error { return second.Release(s.ctx) })
		} else {
			s.refused(b, string(strategy)+": writes too", "shared.NewStrategist", command, pessimistic.ErrHeld, write(b, &second))
		}
		s.ok(a, string(strategy)+": has written", "shared.Access", command, func() error { return first.Release(s.ctx) })
	}
}

// broken is the plot of the scenes about fences: a lock is broken while its holder is paused, and the holder writes late.
type broken struct {
	lock    string // its name
	call    string // that takes it
	command string
	writes  string // the call that writes with a fence
	write   func(c *client, h *pessimistic.Hold) error
	without func(a *client) // what comes of a late write without a fence; nil if it is not shown
}

func (p broken) play(s *stage) {
	a, b := s.client("holder 1"), s.client("holder 2")
	held := map[*client]*pessimistic.Hold{}
	take := func(c *client) func() error {
		return func() error {
			h, err := c.locker().Lock(s.ctx, p.lock, nil)
			if err == nil {
				held[c] = h
				s.ends = append(s.ends, func() error { _ = h.Release(s.ctx); return nil }) // if an act has failed
			}
			return err
		}
	}
	s.ok(a, "takes the lock, and is paused", p.call, p.command, take(a))
	s.ok(b, "breaks the lock: holder 1 does not know", "Locker.Break", "azconc lock break @/"+p.lock+" --now", func() error {
		return only(b.locker().Break(s.ctx, p.lock, &pessimistic.BreakOptions{Now: true}))
	})
	s.ok(b, "takes the lock", p.call, p.command, take(b))
	s.ok(b, "writes with its fence", p.writes, p.command, func() error { return p.write(b, held[b]) })
	s.refused(a, "wakes up and writes with its older fence", p.writes, p.command, fence.ErrFenced, func() error { return p.write(a, held[a]) })
	if p.without != nil {
		p.without(a)
	}
	s.ok(b, "gives the lock back", "Hold.Release", p.command, func() error { return held[b].Release(s.ctx) })
	s.refused(a, "gives back what it has lost", "Hold.Release", p.command, pessimistic.ErrLost, func() error { return held[a].Release(s.ctx) })
}

func pausedHolder(s *stage) {
	s.box()
	s.must(s.crew.upload("locked.json", `{"n":0}`, nil)())
	broken{
		lock: "lock", call: "Locker.Lock", command: "azconc lock run @/lock -- azconc blob update @/locked.json --jq '.n += 1'",
		writes: "blobs.Fenced", write: func(c *client, h *pessimistic.Hold) error {
			return only(optimistic.Update(s.ctx, blobs.Fenced(h, blobs.NewJSON[counter](c.blob("locked.json"))), increment, nil))
		},
		without: func(a *client) {
			s.ok(a, "writes without a fence: holder 2's write is gone", uploadCall, "azconc blob put @/locked.json --file F", a.upload("locked.json", `{"n":1}`, nil))
		},
	}.play(s)
}

func tableLock(s *stage) {
	s.box()
	s.rows()
	name, err := s.crew.locker().TableLock(s.table(), "")
	s.must(err)
	broken{
		lock: name, call: "Locker.TableLock", command: "azconc table lock run # --container @ -- CMD",
		writes: "tables.Transact", write: func(c *client, h *pessimistic.Hold) error {
			return only(tables.Transact(s.ctx, c.entities(), "eu", func(_ context.Context, tx *tables.Tx) error {
				return tx.Upsert("17", order{c.name})
			}, &tables.TransactOptions{Holder: h}))
		},
	}.play(s)
}
