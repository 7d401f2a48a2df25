//go:build !race

package pessimistic_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/ptr"
)

// setting is what the processes are given.
type setting struct {
	name   string
	change func(*pessimistic.LockerOptions)
	opts   pessimistic.LockOptions
	ready  func(w *town)
	crew   int           // so many goroutines more in each process
	cancel time.Duration // when the second process gives up; 0 if it does not
}

func (s *setting) fenced() bool { return strings.HasPrefix(s.name, "fenced") }

var errSick = errors.New("sick")

var settingsOf = []setting{
	{name: "plain"},
	{name: "at least", change: func(o *pessimistic.LockerOptions) { o.AtLeast = 10 * time.Second }},
	{name: "delay", change: func(o *pessimistic.LockerOptions) { o.TakeoverDelay = 3 * time.Second }},
	{name: "quick first", change: func(o *pessimistic.LockerOptions) { o.QuickFirst = true }},
	{name: "infinite", change: func(o *pessimistic.LockerOptions) { o.Duration = pessimistic.Infinite }},
	{name: "content", change: func(o *pessimistic.LockerOptions) { o.AllowContent = true }, ready: func(w *town) { w.Put("job", "content") }},
	{name: "NoWait", opts: pessimistic.LockOptions{NoWait: true}},
	{name: "short", opts: pessimistic.LockOptions{MaxWait: time.Second}},
	{name: "bounded", opts: pessimistic.LockOptions{MaxWait: 20 * time.Second}},
	{name: "patient", opts: pessimistic.LockOptions{Patient: true}},
	{name: "crew", crew: 2},
	{name: "no hand-overs", crew: 1, change: func(o *pessimistic.LockerOptions) { o.HandOvers = -1 }},
	{name: "gives up", cancel: 2 * time.Second},
	{name: "fenced blob"},
	{name: "fenced row", ready: func(w *town) { _, err := w.table(w.Service).CreateTable(w.ctx(), nil); w.check(err) }},
	{name: "reclaim"},
	{name: "sick"}, // the health check of the first process fails for a while
}

// event is what happens to the lock, to its first holder or beside it.
type event struct {
	name   string
	before func(w *town)           // before anybody comes
	during func(w *town, v *visit) // a second after the first holder has it
	late   func(w *town)           // before the second round
	fatal  bool                    // the holder does not come to an end by itself
	long   time.Duration           // for how long requests may be held up
	lost   bool                    // a lease may be lost
}

func (w *town) breaks(v *visit, o pessimistic.BreakOptions, after time.Duration) {
	_, err := pessimistic.Break(w.ctx(), pessimistic.NewBlob(w.ContainerOver(w).NewBlockBlobClient(v.name)), &o)
	if w.setting.name == "infinite" && o.Grace == 0 {
		after = 0
	}
	if err == nil {
		w.cut(v.name, time.Now().Add(after))
	}
}

// cut ends what holders of a blob may rely upon: they cannot know yet, as package pessimistic says under Limits.
func (w *town) cut(name string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cuts = append(w.cuts, cut{name, at})
}

func (w *town) deletes(name string) {
	_, _ = w.ContainerOver(w).NewBlockBlobClient(name).Delete(w.ctx(), nil)
}

var eventsOf = []event{
	{name: "nothing"},
	{name: "break now", lost: true, during: func(w *town, v *visit) { w.breaks(v, pessimistic.BreakOptions{Now: true}, 0) }},
	{name: "break", lost: true, during: func(w *town, v *visit) { w.breaks(v, pessimistic.BreakOptions{}, 20*time.Second) }}, // it ends when it would have expired
	{name: "break with grace", lost: true, during: func(w *town, v *visit) { w.breaks(v, pessimistic.BreakOptions{Grace: 2 * time.Second}, 2*time.Second) }},
	{name: "deleted", lost: true, during: func(w *town, v *visit) {
		w.breaks(v, pessimistic.BreakOptions{Now: true}, 0)
		w.deletes(v.name)
	}},
	{name: "tickets deleted", during: func(w *town, v *visit) { w.deletes(v.name + ".azconc-waiters"); w.deletes("job/slot/0.azconc-waiters") }},
	{name: "dead waiters", during: func(w *town, _ *visit) { w.die(3) }},
	{name: "collected", late: func(w *town) {
		k := w.comes("collector", nil).locker
		for range 100 { // while the others come back
			_, err := k.GC(w.ctx(), &pessimistic.GCOptions{Unused: time.Minute})
			if err != nil && w.outage == nil {
				w.complain("GC: %v", err)
			}
			bubble.Sleep(10 * time.Millisecond)
		}
	}},
	{name: "foreign before", before: (*town).foreign},
	{name: "foreign between", during: func(w *town, v *visit) { w.lurks(v.name) }},
	{name: "clock jumps", lost: true, during: func(_ *town, v *visit) { v.p.is(func() { v.p.jumped += 40 * time.Second }) }},
	{name: "asleep", lost: true, long: 25 * time.Second, during: func(_ *town, v *visit) { v.p.is(func() { v.p.asleep = time.Now().Add(25 * time.Second) }) }},
	{name: "slow, then cut", lost: true, long: 40 * time.Second, before: func(w *town) { w.slow = 2 * time.Second }, during: func(_ *town, v *visit) {
		bubble.Sleep(6 * time.Second) // its renewals have succeeded
		v.p.is(func() { v.p.asleep = time.Now().Add(30 * time.Second) })
	}},
	{name: "crash", lost: true, fatal: true, during: func(_ *town, v *visit) { v.p.is(func() { v.p.dead = true }) }},
	{name: "wiped", late: func(w *town) {
		for _, name := range w.names() {
			_, _ = w.Service.BlockBlob("box", name).SetMetadata(w.ctx(), map[string]*string{"azconclock": ptr.Optional("2")}, nil)
		}
	}},
}

// die has processes that wait for the lock, and are killed.
func (w *town) die(n int) {
	for range n {
		p := w.comes("dead", nil)
		go func() {
			ctx, end := context.WithTimeout(w.ctx(), 2*time.Second)
			defer end()
			c := &called{p: p, kind: w.way.kinds[0]}
			_ = w.way.do(ctx, p, c, &pessimistic.LockOptions{}, func(context.Context, holder) error { return nil })
		}()
		time.AfterFunc(1500*time.Millisecond, func() { p.is(func() { p.dead = true }) })
	}
}

// foreign has a program that knows nothing of azconc lease the lock for three seconds.
func (w *town) foreign() {
	p := w.comes("first", w.setting.change)
	_ = w.way.do(w.ctx(), p, &called{p: p, kind: w.way.kinds[0]}, &pessimistic.LockOptions{}, func(context.Context, holder) error { return nil })
	for _, name := range w.names() {
		if client, err := lease.NewBlobClient(w.ContainerOver(w).NewBlockBlobClient(name), nil); err == nil && w.way.locks(name) {
			if _, err := client.AcquireLease(w.ctx(), 15, nil); err == nil {
				time.AfterFunc(3*time.Second, func() { _, _ = client.ReleaseLease(w.ctx(), nil) })
			}
		}
	}
}

// names returns the blobs that were leased.
func (w *town) names() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.leases {
		if !slices.Contains(names, l.resource) {
			names = append(names, l.resource)
		}
	}
	return names
}

// lurks has such a program take the lock as soon as it is free.
func (w *town) lurks(name string) {
	client, err := lease.NewBlobClient(w.ContainerOver(w).NewBlockBlobClient(name), nil)
	w.check(err)
	for range 3000 {
		if _, err := client.AcquireLease(w.ctx(), 15, nil); err == nil {
			break
		}
		bubble.Sleep(10 * time.Millisecond)
	}
	bubble.Sleep(3 * time.Second)
	_, _ = client.ReleaseLease(w.ctx(), nil)
}

// fault is what the network does: once, to the first process, or to all of them for a while.
type fault struct {
	name   string
	kind   aztest.FaultKind
	delay  time.Duration
	outage aztest.FaultKind
	lasts  time.Duration
}

var faultsOf = []fault{
	{name: "quiet"},
	{name: "answer lost", kind: aztest.LoseAnswer},
	{name: "request lost", kind: aztest.LoseRequest},
	{name: "doubled", kind: aztest.RepeatAtOnce},
	{name: "again later", kind: aztest.RepeatLater, delay: 20 * time.Second},
	{name: "later", kind: aztest.CommitAfterBreak, delay: 20 * time.Second},
	{name: "hang", kind: aztest.Hang},
	{name: "outage of answers", outage: aztest.LoseAnswer, lasts: 3 * time.Second},
	{name: "outage of connections", outage: aztest.Refuse, lasts: 3 * time.Second},
	{name: "busy", outage: aztest.Throttle, lasts: 3 * time.Second},
	{name: "long outage", outage: aztest.Hang, lasts: 20 * time.Second},
}
