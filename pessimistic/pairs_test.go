//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package pessimistic_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// sampled is how many of the cases beyond the pairs a run without -short tries, always the same ones; beyond is for how long others are
// tried then, which chance selects.
const sampled = 150

var beyond = flag.Duration("beyond", 0, "how long further cases beyond the pairs are tried, without -short")

// only selects cases by a part of their names, and shows what is wrong with them.
var only = flag.String("only", "", "the cases to run, as a regular expression for way/setting/event/fault/request")

var onlyAt = flag.Int("at", 0, "the request of the cases that -only selects from which on the network fails")

// combination is one case: a way to hold something, what the processes are given, what happens to it, and what the network does from
// one of the requests on.
type combination struct {
	way     *way
	setting *setting
	event   *event
	fault   *fault
	at      int
}

func (k combination) String() string {
	return fmt.Sprintf("%s/%s/%s/%s/%d", k.way.name, k.setting.name, k.event.name, k.fault.name, k.at)
}

// possible reports whether the case exists. What is left out is a limit that the package states.
func (k combination) possible() bool {
	infinite := k.setting.name == "infinite"
	switch {
	case !k.way.has(k.setting.name), !k.way.has(k.event.name):
		return false
	case infinite && (k.event.fatal || k.event.long > 0 || k.event.name == "dead waiters" || k.fault.delay > 0 || k.fault.outage != "" || k.fault.kind == aztest.Hang):
		return false // what a dead process, or a late request, has leased lasts until it is broken
	}
	return true
}

// run runs the case, and returns what is wrong.
func (k combination) run(t *testing.T) (wrong []string, w *town) {
	synctest.Test(t, func(t *testing.T) {
		w = open(t, k)
		w.lives()
		wrong = w.judge()
	})
	return wrong, w
}

// again is when the processes come for the second time.
const again = 150 * time.Second

// lives lets three processes want the lock twice, each a moment after the one before, while something happens.
func (w *town) lives() {
	if w.setting.ready != nil {
		w.setting.ready(w)
	}
	if w.event.before != nil {
		w.event.before(w)
	}
	w.began = time.Now()
	var all sync.WaitGroup
	for i := range 3 {
		p := w.comes(string(rune('A'+i)), func(o *pessimistic.LockerOptions) {
			if w.setting.change != nil {
				w.setting.change(o)
			}
			if w.setting.name == "sick" && i == 0 {
				o.Health = w.health
			}
		})
		if w.all = append(w.all, p); i == 0 {
			p.slow = w.slow
		}
		switch f := w.fault; {
		case w.outage != nil:
			p.injector.SetFaults(w.outage.Fault())
		case f.kind != "" && i == 0:
			p.injector.SetFaults(aztest.Fault{Kind: f.kind, Skip: w.at - 1, Count: 1, Delay: f.delay})
		}
		for j := range 1 + w.setting.crew {
			all.Go(func() { w.comesTwice(p, i, j) })
		}
	}
	stop := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { w.happens(stop) })
	beside.Go(func() { w.delivers(stop) })
	all.Wait()
	close(stop)
	w.late.Wait()
	beside.Wait()
	for _, p := range w.all {
		p.injector.Flush()
	}
	bubble.Sleep(time.Minute + time.Second)
	w.probe()
}

func (w *town) health(context.Context) error {
	if since := time.Since(w.began); since > 3*time.Second && since < 20*time.Second {
		return errSick
	}
	return nil
}

func (w *town) comesTwice(p *process, i, j int) {
	kind, first, cancel := w.way.kinds[i], 2*time.Second, time.Duration(0)
	if i == 0 && j == 0 {
		first = 8 * time.Second
	}
	if i == 1 && j == 0 {
		cancel = w.setting.cancel
	}
	later := time.Duration(i)*100*time.Millisecond + time.Duration(j)*30*time.Millisecond
	bubble.Sleep(later + time.Duration(min(i, 1))*time.Second) // after the first holder of a new lock has waited for the next second
	p.calls(kind, w.setting.opts, first, cancel)
	bubble.Sleep(time.Until(w.began.Add(again + later)))
	p.state.Lock()
	dead := p.dead
	p.state.Unlock()
	if !dead {
		p.calls(kind, w.setting.opts, 2*time.Second, 0)
	}
}

// happens waits for the moment at which something happens, and lets it happen.
func (w *town) happens(stop <-chan struct{}) {
	if during := w.event.during; during != nil {
		for range 6000 {
			w.mu.Lock()
			var v *visit
			if len(w.visits) > 0 {
				v = w.visits[0]
			}
			w.mu.Unlock()
			if v != nil {
				bubble.Sleep(time.Second)
				during(w, v)
				break
			}
			bubble.Sleep(10 * time.Millisecond)
		}
	}
	if w.event.late != nil {
		select {
		case <-time.After(time.Until(w.began.Add(again - 50*time.Millisecond))):
			w.event.late(w)
		case <-stop:
		}
	}
}

// delivers delivers what the network holds back when it is due.
func (w *town) delivers(stop <-chan struct{}) {
	if w.fault.delay == 0 {
		return
	}
	for {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-stop:
			return
		}
		if p := w.all[0]; p.injector.Met()[w.fault.kind] > 0 {
			bubble.Sleep(w.fault.delay)
			p.injector.Flush()
			return
		}
	}
}

// TestOnly runs the cases that -only selects.
func TestOnly(t *testing.T) {
	if *only == "" {
		t.Skip("SKIP: -only selects no case")
	}
	chosen, number := regexp.MustCompile(*only), 0
	for _, k := range trials() {
		if !chosen.MatchString(k.String()) {
			continue
		}
		if number++; *onlyAt > 0 {
			k.at = *onlyAt
		}
		wrong, w := k.run(t)
		if len(wrong) > 0 {
			t.Errorf("%v\n\t%s", k, strings.Join(wrong, "\n\t"))
		} else if testing.Verbose() {
			t.Logf("%v: right%s", k, w.story())
		}
		for _, p := range w.all {
			for _, r := range p.injector.Log() {
				t.Logf("%s, %v: %v %s", p.name, r.At.Sub(w.began), r, r.Fault)
			}
		}
	}
	t.Logf("%d cases", number)
}

// TestPairsOfLocksAndWhatHappensToThem runs cases in which every pair of a way to hold something, what the processes are given, what
// happens to it, and what the network does meets. Without -short, each is tried at two requests, and a sample of the others; with -short, a third of
// them is tried.
func TestPairsOfLocksAndWhatHappensToThem(t *testing.T) {
	cases := 0
	try := func(k combination) {
		if wrong, _ := k.run(t); len(wrong) > 0 {
			t.Errorf("%v\n\t%s", k, strings.Join(wrong, "\n\t"))
		}
		cases++
	}
	chosen, others := paired(trials())
	for n, k := range chosen {
		if testing.Short() && n%3 > 0 {
			continue
		}
		if try(k); k.fault.name != "quiet" && !testing.Short() {
			k.at = k.at%requests + requests/2
			try(k)
		}
	}
	t.Logf("%d cases of pairs", cases)
	if testing.Short() {
		return
	}
	fixed, end := rand.New(rand.NewPCG(40, 12)), time.Now().Add(*beyond)
	fixed.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for i, k := range others {
		if i >= sampled && !time.Now().Before(end) {
			break
		}
		if k.fault.name != "quiet" {
			k.at = 1 + fixed.IntN(requests)
		}
		try(k)
	}
	t.Logf("%d cases of %d", cases, len(others))
}
