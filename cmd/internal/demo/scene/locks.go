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
func (c *client) take(r pessimistic.Resource, id *string) error {
	got, err := manual.Acquire(c.ctx, r, &manual.AcquireOptions{Duration: shortest})
	*id = got.ID
	return err
}

func leaseScene(s *stage) {
	s.page()
	a, b := s.client("holder"), s.client("other")
	var lease optimistic.Conditions
	var none string
	a.does("acquires the lease", acquireCall, acquireCommand).ok(a.take(pessimistic.NewBlob(a.blob("page.txt")), &lease.LeaseID))
	b.does("acquires it too", acquireCall, acquireCommand).refused(pessimistic.ErrHeld, b.take(pessimistic.NewBlob(b.blob("page.txt")), &none))
	b.does("writes without the lease", uploadCall, putCommand).refused(nil, b.upload("page.txt", "without", nil))
	b.does("reads without the lease", readCall, getCommand).ok(b.read(new(*optimistic.Version[[]byte])))
	a.does("writes with the lease", uploadCall, putCommand+" --lease-id ID").ok(a.upload("page.txt", "with", &lease))
	a.does("releases the lease", "manual.Release", "azconc blob lease release @/page.txt --lease-id ID").
		ok(manual.Release(s.ctx, pessimistic.NewBlob(a.blob("page.txt")), lease.LeaseID, nil))
	b.does("writes", uploadCall, putCommand).ok(b.upload("page.txt", "after", nil))
}

func containerLease(s *stage) {
	s.page()
	a, b := s.client("holder"), s.client("other")
	var lease settings.DeleteContainerOptions
	a.does("acquires the container's lease", "pessimistic.NewContainer", "azconc container lease acquire @ --duration 15s").
		ok(a.take(pessimistic.NewContainer(a.container()), &lease.Conditions.LeaseID))
	b.does("writes a blob in it: the lease does not mind", uploadCall, putCommand).ok(b.upload("page.txt", "more", nil))
	b.does("deletes the container", "settings.DeleteContainer", "azconc container delete @").
		refused(nil, only(settings.DeleteContainer(s.ctx, b.container(), nil)))
	a.does("deletes the container with the lease", "settings.DeleteContainer", "azconc container delete @ --lease-id ID").
		ok(only(settings.DeleteContainer(s.ctx, a.container(), &lease)))
	s.ends = nil // nothing is left to delete
}

func leaseStrategies(s *stage) {
	s.box()
	a, b := s.client("client 1"), s.client("client 2")
	type lock interface {
		Release(ctx context.Context) error
	}
	rwlock := func(c *client, name string) *shared.RWLock {
		l, err := shared.NewRWLock(c.locker(), name, nil)
		c.must(err)
		return l
	}
	for _, strategy := range []struct {
		title, name, call string
		write             func(c *client, name string) (lock, error)
		together          bool // writers
	}{
		{"exclusive write, shared read", "shared-read", "RWLock.Lock", func(c *client, name string) (lock, error) { return rwlock(c, name).TryLock(s.ctx) }, false},
		{"exclusive write, exclusive read", "exclusive", "Locker.Lock", func(c *client, name string) (lock, error) { return c.locker().TryLock(s.ctx, name) }, false},
		// Those who write are what an RWLock calls readers.
		{"shared write, exclusive read", "shared-write", "RWLock.RLock", func(c *client, name string) (lock, error) { return rwlock(c, name).TryRLock(s.ctx) }, true},
	} {
		command := "azconc lock run @/" + strategy.name + " --no-wait -- CMD"
		a.does(strategy.title+": writes", strategy.call, command)
		first, err := strategy.write(a, strategy.name)
		a.ok(err)
		b.does(strategy.title+": writes too", strategy.call, command)
		second, err := strategy.write(b, strategy.name)
		if strategy.together {
			b.ok(err)
			b.does(strategy.title+": has written", "Release", command).ok(second.Release(s.ctx))
		} else {
			b.refused(pessimistic.ErrHeld, err)
		}
		a.does(strategy.title+": has written", "Release", command).ok(first.Release(s.ctx))
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
	take := func(c *client, does string) *pessimistic.Hold {
		c.does(does, p.call, p.command)
		h, err := c.locker().Lock(s.ctx, p.lock, nil)
		c.ok(err)
		s.ends = append(s.ends, func() error { _ = h.Release(s.ctx); return nil }) // if an act has failed
		return h
	}
	first := take(a, "takes the lock, and is paused")
	b.does("breaks the lock: holder 1 does not know", "Locker.Break", "azconc lock break @/"+p.lock+" --now").
		ok(only(b.locker().Break(s.ctx, p.lock, &pessimistic.BreakOptions{Now: true})))
	second := take(b, "takes the lock")
	b.does("writes with its fence", p.writes, p.command).ok(p.write(b, second))
	a.does("wakes up and writes with its older fence", p.writes, p.command).refused(fence.ErrFenced, p.write(a, first))
	if p.without != nil {
		p.without(a)
	}
	b.does("gives the lock back", "Hold.Release", p.command).ok(second.Release(s.ctx))
	a.does("gives back what it has lost", "Hold.Release", p.command).refused(pessimistic.ErrLost, first.Release(s.ctx))
}

func pausedHolder(s *stage) {
	s.box()
	s.must(s.crew.upload("locked.json", `{"n":0}`, nil))
	broken{
		lock: "lock", call: "Locker.Lock", command: "azconc lock run @/lock -- azconc blob update @/locked.json --jq '.n += 1'",
		writes: "blobs.Fenced", write: func(c *client, h *pessimistic.Hold) error {
			return only(optimistic.Update(s.ctx, blobs.Fenced(h, blobs.NewJSON[counter](c.blob("locked.json"))), increment, nil))
		},
		without: func(a *client) {
			a.does("writes without a fence: holder 2's write is gone", uploadCall, "azconc blob put @/locked.json --file F").
				ok(a.upload("locked.json", `{"n":1}`, nil))
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
