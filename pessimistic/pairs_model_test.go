//go:build !race

package pessimistic_test

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
)

// judge is the model: what may be said of a case, whatever it is made of.
func (w *town) judge() []string {
	w.aloneIsAlone()
	w.validIsHeld()
	w.fencesGrow()
	w.laterFencesWin()
	w.inTurn()
	for _, c := range w.calls {
		w.toldTheTruth(c)
		w.isServed(c)
	}
	if len(w.wrong) > 0 {
		w.wrong[0] += w.story()
	}
	return w.wrong
}

// aloneIsAlone: an exclusive holder is alone, and no more than the slots are held. Those whose lease was broken without a
// warning, or its blob deleted, learn of it with their next renewal (see Limits): until then they count no more.
func (w *town) aloneIsAlone() {
	var all []visit
	for _, v := range w.visits {
		one := *v
		for _, c := range w.cuts {
			if c.name == v.name && w.since(v).Before(c.at) && c.at.Before(one.to) {
				one.to = c.at
			}
		}
		if one.to.After(one.from) {
			all = append(all, one)
		}
	}
	for _, a := range all {
		beside := 0
		for _, b := range all {
			switch {
			case !(a.from.Before(b.to) && !b.from.After(a.from)):
			case a.id == b.id && a.from.Equal(b.from):
				beside++
			case a.kind == "alone" || b.kind == "alone":
				w.complain("%s (fence %d) and %s (fence %d) held it at once, from %v on", b.p.name, b.fence, a.p.name, a.fence, a.from.Sub(w.began))
			default:
				beside++
			}
		}
		if a.kind == "slot" && beside > w.way.most {
			w.complain("%d hold one of %d slots", beside, w.way.most)
		}
	}
}

// validIsHeld: a holder takes itself for one no longer than the service does.
func (w *town) validIsHeld() {
	for _, v := range w.visits {
		if slices.ContainsFunc(w.cuts, func(c cut) bool { return c.name == v.name }) {
			continue
		}
		for _, l := range w.leases {
			if l.resource == v.name && l.id != v.id && l.from.After(w.since(v)) && l.from.Before(v.valid) {
				w.complain("%s took itself for the holder of %s until %v, and %.8s leased it at %v", v.p.name, v.name, v.valid.Sub(w.began), l.id, l.from.Sub(w.began))
			}
		}
	}
}

// since returns when the lease of a visit was granted.
func (w *town) since(v *visit) time.Time {
	for _, l := range w.leases {
		if l.id == v.id && l.resource == v.name {
			return l.from
		}
	}
	return v.from
}

// fencesGrow: each holder's fence is larger than all before it, also of a blob that was deleted in between, as the service has seen them.
func (w *town) fencesGrow() {
	last := map[string]stamp{}
	for _, s := range w.stamps {
		l := last[s.resource]
		quick := w.setting.name == "quick first" && s.at.Sub(l.at) < 2*time.Second // the blob was deleted within a second: see QuickFirst
		if s.fence <= l.fence && !quick && !strings.Contains(s.resource, "/member/") {
			w.complain("the fence of %s went from %d to %d", s.resource, l.fence, s.fence)
		}
		last[s.resource] = s
	}
	for _, v := range w.visits {
		if v.fence > 0 && !slices.ContainsFunc(w.stamps, func(s stamp) bool { return s.resource == v.name && s.fence == v.fence }) {
			w.complain("%s holds %s with fence %d, which is not stored", v.p.name, v.name, v.fence)
		}
	}
}

// laterFencesWin: what is written under a fence is written once, and never after a write under a later one.
func (w *town) laterFencesWin() {
	kept := map[string]string{}
	for _, one := range w.writes {
		if _, ok := kept[one.on]; !ok {
			kept[one.on] = w.kept(one.on)
		}
		is := strings.Count(kept[one.on], one.mark)
		refused := errors.Is(one.err, fence.ErrFenced) || errors.Is(one.err, optimistic.ErrConflict)
		if is > 1 || one.err == nil && is == 0 || refused && is > 0 {
			w.complain("the write%s is there %d times, and was told: %v", one.mark, is, one.err)
		}
	}
	for on, text := range kept {
		var last *written
		for mark := range strings.FieldsSeq(text) {
			i := slices.IndexFunc(w.writes, func(one *written) bool { return one.mark == " "+mark })
			if now := w.writes[i]; last != nil && now.fence < last.fence {
				w.complain("on %s,%s was written under fence %d after%s under %d", on, now.mark, now.fence, last.mark, last.fence)
			} else {
				last = now
			}
		}
	}
}

// others reports whether another caller had what the call wanted at some time, or was about to have it.
func (w *town) others(c *called, from, to time.Time) bool {
	slots := map[string]bool{}
	to = to.Add(2 * pesstest.Latency) // it is noted with its answer
	for _, l := range w.leases {
		if l.by == c.p && w.setting.crew == 0 || !w.way.locks(l.resource) || !l.from.Before(to) || !l.until.After(from) {
			continue
		}
		if c.kind == "alone" || strings.HasSuffix(l.resource, "/gate") {
			return true
		}
		slots[l.resource] = true
	}
	return len(slots) >= w.way.most
}

// disturbed reports whether an outage, or a machine that stands still, is in the way of a call.
func (w *town) disturbed(c *called) bool {
	c.p.state.Lock()
	defer c.p.state.Unlock()
	if c.p.dead || !c.p.asleep.IsZero() && c.began.Before(c.p.asleep) {
		return true
	}
	return w.outage != nil && !w.outage.End().IsZero() && c.began.Before(w.outage.End()) && !c.ended.Before(w.outage.End().Add(-w.fault.lasts))
}

// toldTheTruth: nil means that it was held; "held" that another caller held it, until the end of the wait; anything else has a reason.
func (w *town) toldTheTruth(c *called) {
	held, isHeld := errors.AsType[*pessimistic.HeldError](c.err)
	waited := c.ended.Sub(c.began)
	mayLose := w.event.lost || w.setting.name == "sick" || w.fault.lasts > 10*time.Second
	switch {
	case c.err == nil:
		if c.works == 0 {
			w.complain("%s was told that it held it, and did not work", c.p.name)
		}
	case waited >= patience:
		w.complain("%s never got it: %v", c.p.name, c.err)
	case w.disturbed(c), c.gaveUp, (w.fault.name == "hang" || w.slow > 0) && c.opts.MaxWait == time.Second: // one try takes longer
	case c.works > 0:
		if !errors.Is(c.err, pessimistic.ErrLost) || !mayLose {
			w.complain("%s was told, after its work: %v", c.p.name, c.err)
		}
	case isHeld:
		from, late := c.began.Add(-100*time.Millisecond), 2*time.Second
		if w.fault.name == "hang" || w.slow > 0 && c.p == w.all[0] {
			late += 10 * time.Second // a try of an acquisition takes 7.5 s, and an attempt several requests
		}
		if !c.opts.NoWait && w.slow == 0 {
			from = c.ended.Add(-300 * time.Millisecond)
		}
		switch {
		case !c.opts.NoWait && c.opts.MaxWait == 0:
			w.complain("%s was refused although it waits: %v", c.p.name, c.err)
		case !c.opts.NoWait && waited < c.opts.MaxWait:
			w.complain("%s was refused after %v, and waits for %v: %v", c.p.name, waited, c.opts.MaxWait, c.err)
		case held.State.Free() && w.setting.crew == 0:
			w.complain("%s was refused a free lock after %v: %v", c.p.name, waited, c.err)
		case !w.others(c, from, c.ended):
			w.complain("%s was told after %v that it is held, and it was not: %v", c.p.name, waited, c.err)
		case waited > max(c.opts.MaxWait, 2*time.Second)+late: // a new blob takes two
			w.complain("%s waited for %v: %v", c.p.name, waited, c.err)
		}
	case errors.Is(c.err, pessimistic.ErrLost) && w.event.lost && (c.opts.NoWait || w.setting.name == "delay"):
	default:
		w.complain("%s failed after %v: %v", c.p.name, waited, c.err)
	}
}

// isServed: what is free, and waited for, is taken soon.
func (w *town) isServed(c *called) {
	most := 8 * time.Second
	if w.event.name == "dead waiters" || w.event.fatal || w.event.long > 0 || w.fault.name != "quiet" {
		most += 5 * time.Second
	}
	if c.p == w.all[0] {
		most += 8 * w.slow // for so many requests, if the lock is removed while it waits
	}
	most += w.fault.lasts + w.fault.delay
	if w.fault.kind != "" && w.fault.kind == "hang" {
		most += 10 * time.Second
	}
	if w.way.name == "part" && w.event.lost {
		most += 5 * time.Second // its member learns of it with the next renewal
	}
	if c.opts.NoWait || w.way.most > 1 || w.way.name == "write" || w.disturbed(c) && w.outage == nil {
		return
	}
	end := c.ended
	if c.works > 0 {
		end = c.got
	}
	for free := c.began; free.Before(end); {
		next := end
		for _, l := range w.leases {
			if w.way.locks(l.resource) && l.from.Before(next) && l.until.After(free) {
				next = l.from
			}
		}
		if gap := next.Sub(free); gap > most {
			w.complain("it was free for %v from %v on, while %s waited for it", gap, free.Sub(w.began), c.p.name)
		}
		for free = next; slices.ContainsFunc(w.leases, func(l *leased) bool {
			return w.way.locks(l.resource) && !l.from.After(free) && l.until.After(free) && end.After(free)
		}); {
			for _, l := range w.leases {
				if w.way.locks(l.resource) && !l.from.After(free) && l.until.After(free) {
					free = l.until
				}
			}
		}
	}
}

// probe looks what is left: no goroutine that sends requests, no lease, no ticket, and a lock that a stranger gets at once.
func (w *town) probe() {
	w.mu.Lock()
	count := w.count
	w.mu.Unlock()
	bubble.Sleep(40 * time.Second)
	w.mu.Lock()
	if w.count > count {
		w.wrong = append(w.wrong, "requests are still sent")
	}
	for _, l := range w.leases {
		if l.until.After(time.Now()) {
			w.wrong = append(w.wrong, l.resource+" is still leased")
		}
	}
	w.mu.Unlock()
	if w.fault.name == "quiet" && !w.event.fatal && w.event.long == 0 && w.event.name != "dead waiters" && w.way.name != "lease" {
		k := w.comes("looks", nil).locker
		for _, lock := range []string{"job", "job/0", "job/gate"} { // how far those of slots are served does not say the record of slot 0
			if names, err := k.Waiters(w.ctx(), lock); err == nil && len(names) > 0 {
				w.complain("%q have left tickets for %s", names, lock)
			}
		}
	}
	p := w.comes("probe", w.setting.change)
	c := p.calls(w.way.kinds[0], pessimistic.LockOptions{NoWait: true}, time.Second, 0)
	if took := c.ended.Sub(c.began) - p.locker.Options().AtLeast; c.err != nil || took > 7*time.Second {
		w.complain("a stranger got it after %v: %v", took, c.err)
	}
	if leased := w.Leased(); len(leased) > 0 {
		w.complain("the stranger has left %q leased", leased)
	}
}
