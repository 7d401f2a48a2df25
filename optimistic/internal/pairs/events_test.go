package pairs

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/aztest"
)

// event is what happens beside the call: meanwhile, which is after its first delivery if the network has a fault and before it
// otherwise, or after it.
type event struct {
	name      string
	meanwhile func(k *trial) bool // false if the case does not exist
	after     func(k *trial) bool
	before    func(k *trial) bool
	facet     string // what it changes; that of the call if it is empty
	moves     bool   // it changes the version
	removes   bool   // it may remove the trace of the call
	drops     bool   // a writer outside azconc drops the rest of the resource
	loses     bool   // it is not possible under a lease
	exists    bool   // it needs the resource
	locked    bool   // it needs a lock
	copies    bool   // what the resource remembers is that of another one, or of an earlier version
}

func rerun(k *trial) bool {
	k.w.do(k.w.process(), k.way, k.call)
	return true
}

// foreign returns a writer outside azconc.
func foreign(keep bool) func(k *trial) bool {
	return func(k *trial) bool {
		if len(k.w.values) == 0 {
			k.w.place.create(k.w, "f")
		} else {
			k.w.place.foreign(k.w, k.way.facet, keep)
		}
		k.w.observe(nil)
		k.w.forget(!keep)
		return true
	}
}

func copied(k *trial) bool {
	if len(k.w.values) == 0 {
		return false
	}
	k.w.place.copy(k.w)
	k.w.observe(nil)
	return true
}

func removed(again bool) func(k *trial) bool {
	return func(k *trial) bool {
		if len(k.w.values) == 0 {
			return false
		}
		k.w.place.remove(k.w)
		k.w.observe(nil)
		k.w.forget(true)
		if again {
			k.w.place.create(k.w, "n")
			k.w.observe(nil)
		}
		return true
	}
}

// laterHolder is the next holder of the lock, with the same operation or with one of its own.
func laterHolder(k *trial) bool {
	c := k.call
	if c.holder = holder(20, nil); c.id == "" {
		c.mark = "h"
	}
	k.w.do(k.w.process(), k.way, c)
	return true
}

// earlierHolder is the holder of the examined call, who was paused and writes again.
func earlierHolder(k *trial) bool {
	c := k.call
	c.mark, c.id = "e", ""
	if k.way.accepts("holder") {
		k.w.do(k.process, k.way, c)
	}
	return true
}

func then(all ...func(k *trial) bool) func(k *trial) bool {
	return func(k *trial) bool {
		for _, f := range all {
			if !f(k) {
				return false
			}
		}
		return true
	}
}

var events = []event{
	{name: "nothing"},
	{name: "rerun", after: rerun},
	{name: "rerun in the process", after: func(k *trial) bool { k.w.do(k.process, k.way, k.call); return true }},
	{name: "rerun meanwhile", meanwhile: rerun, moves: true},
	{name: "later holder", after: then(laterHolder, earlierHolder), locked: true},
	{name: "later holder meanwhile", meanwhile: laterHolder, moves: true, locked: true},
}

var foreignEvents = []event{
	{name: "foreign writer meanwhile", meanwhile: foreign(true), moves: true, removes: true},
	{name: "foreign writer that drops meanwhile", meanwhile: foreign(false), moves: true, removes: true, drops: true},
	{name: "foreign writer, rerun", after: then(foreign(true), rerun)},
	{name: "foreign writer that drops, rerun", after: then(foreign(false), rerun), drops: true},
}

var copyEvents = []event{
	{name: "copied meanwhile", meanwhile: copied, moves: true, removes: true, loses: true, exists: true},
	{name: "copied, rerun", after: then(copied, rerun), loses: true, copies: true},
}

var overwriteEvents = []event{
	{name: "overwritten by a copy meanwhile", meanwhile: overwritten, moves: true, removes: true, loses: true},
}

// overwritten is a copy of another blob of azconc's over this one, by a program outside of it.
func overwritten(k *trial) bool {
	p := k.w.process()
	source := p.container().NewBlockBlobClient("another")
	_, err := optimistic.Create(k.w.ctx(), blobs.NewJSON[document](source), document{"n"}, nil)
	k.w.check(err)
	_, err = k.w.direct().block().BlobClient().StartCopyFromURL(k.w.ctx(), source.URL(), nil)
	k.w.check(err)
	k.w.observe(nil)
	k.w.forget(true)
	return true
}

var removeEvents = []event{
	{name: "deleted meanwhile", meanwhile: removed(false), moves: true, removes: true, loses: true, exists: true},
	{name: "made again meanwhile", meanwhile: removed(true), moves: true, removes: true, loses: true, exists: true},
	{name: "made again, rerun", after: then(removed(true), rerun), loses: true},
}

// deletedTwice is another process that deletes the counter, and a network that delivers one of the deletions again, later.
func deletedTwice(k *trial) bool {
	p := k.w.process()
	network := aztest.Inject(p.transport, 1, aztest.Fault{Kind: aztest.RepeatLater, Match: aztest.Op("Delete Blob"), Count: 1, Delay: time.Hour})
	p.transport = network
	k.late = network.Flush
	k.w.do(p, deleteCounter, call{mark: "d"})
	k.w.forget(true)
	return true
}

var counterEvents = []event{
	{name: "deleted meanwhile, and once more later", meanwhile: deletedTwice, moves: true, removes: true, loses: true, exists: true, after: func(k *trial) bool {
		if k.late == nil { // the call has ended before its first write
			return false
		}
		k.late()
		return true
	}},
}

// otherwise returns the events in which another process writes the resource in another way, given nothing, "*" or an operation.
func otherwise(other *way, given string) []event {
	write := func(k *trial) bool {
		c := call{mark: "o", lease: k.w.lease}
		switch given {
		case "*":
			c.match = azcore.ETagAny
		case "id":
			c.id = "other"
		}
		if k.w.lease != "" && !other.accepts("lease") || len(k.w.values) == 0 {
			return false
		}
		k.w.do(k.w.process(), other, c)
		k.w.forget(other.forgets)
		return true
	}
	name := other.name
	if given != "plain" {
		name += " given " + given
	}
	return []event{
		{name: name + " meanwhile", meanwhile: write, facet: other.facet, moves: true, removes: other.forgets || other.traceless, exists: true},
		{name: name + ", rerun", after: then(write, rerun)},
	}
}

// remembered is the event in which another process has carried out an operation before, and does it again afterwards.
func remembered(other *way) event {
	write := func(k *trial) bool {
		if k.w.lease != "" && !other.accepts("lease") || len(k.w.values) == 0 {
			return false
		}
		k.w.do(k.w.process(), other, call{mark: "o", id: "earlier", lease: k.w.lease})
		return true
	}
	return event{name: "after an operation of " + other.name, before: write, after: func(k *trial) bool {
		k.w.forget(k.way.forgets)
		return write(k)
	}}
}

// eventsAt returns all events at a place.
func eventsAt(pl *place, ways []*way) []event {
	all := append([]event(nil), events...)
	if pl.foreign != nil {
		all = append(all, foreignEvents...)
	}
	if pl.copy != nil {
		all = append(all, copyEvents...)
	}
	if pl == counterPlace {
		all = append(all, counterEvents...)
	}
	if pl == blobPlace {
		all = append(all, overwriteEvents...)
	}
	if pl.remove != nil {
		all = append(all, removeEvents...)
	}
	for _, other := range ways {
		if other.place != pl || other.creates {
			continue
		}
		for _, given := range []string{"plain", "*", "id"} {
			if other.accepts(given) && (given != "id" || other.blind) { // the others keep what they have read
				all = append(all, otherwise(other, given)...)
			}
		}
		if other.accepts("id") && !other.blind && !other.final {
			all = append(all, remembered(other))
		}
	}
	return all
}

func (w *world) forget(really bool) {
	if really {
		w.history = append(w.history, entry{forgot: true})
	}
}
