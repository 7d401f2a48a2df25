package pairs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/fence"
)

// patience is how long a call may take in which nothing is unavailable for longer than 0.2 s, and hung how long one whose request is
// swallowed: a try takes 30 s.
const (
	patience = 5 * time.Second
	hung     = 40 * time.Second
)

// model is what may be said of a history: how often each mark was applied, what the resource remembers, which fence it has, and what
// its writers were told.
type model struct {
	k         *trial
	values    map[string]string
	calls     map[string]*tally // by mark
	done      map[string]int    // by id: since when the operation counts as carried out; nothing has made the resource forget it
	fences    []admitted
	ended     map[*told]bool
	forgot    int // how often the resource was made to forget
	forgotten int // when that was the last time
	now       int // the place in the history
	wrong     []string
}

// tally is what is known of the calls with one mark.
type tally struct {
	way        *way
	blind      bool // their text replaces any other
	id         string
	applied    int
	sure, open int // calls that were told that they were applied, and that they may have been
}

// admitted is a success under a fence.
type admitted struct {
	at    int
	token fence.Token
}

func (m *model) complain(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// judge returns what is wrong with the history of a case that began with the values first.
func (k *trial) judge(first map[string]string) []string {
	m := &model{k: k, values: first, calls: map[string]*tally{}, done: map[string]int{}, ended: map[*told]bool{}, forgotten: -1}
	for i, e := range k.w.history {
		m.now = i
		switch {
		case e.told != nil:
			m.told(e.told)
		case e.forgot:
			m.forgot, m.forgotten = m.forgot+1, i
			clear(m.done)
			m.fences = nil
		default:
			m.stored(e.values, e.by)
		}
	}
	for mark, t := range m.calls {
		m.count(mark, t)
	}
	return m.wrong
}

func (m *model) of(d *told) *tally {
	t := m.calls[d.mark]
	if t == nil {
		t = &tally{way: d.way, id: d.id, blind: d.blind() || d.way.blind && !d.create && !d.named()}
		m.calls[d.mark] = t
	}
	return t
}

// fence returns the largest fence of the calls that ended before a place in the history.
func (m *model) fence(before int) (largest fence.Token) {
	for _, a := range m.fences {
		if a.at < before {
			largest = max(largest, a.token)
		}
	}
	return largest
}

// stored notes that a request has changed a value.
func (m *model) stored(now map[string]string, by *told) {
	for _, facet := range m.k.w.place.facets {
		before, after := m.values[facet], now[facet]
		switch {
		case by == nil || before == after:
		case facet != by.way.facet:
			if !by.way.forgets && by.match == "" && before != "" { // a version that was not read is replaced as a whole
				m.complain("%s of %s changed %s from %q to %q", by.way.name, by.mark, facet, before, after)
			}
		case by.way.removes:
			if after == "" {
				m.of(by).applied++
			}
		case by.way.blind || by.blind():
			m.of(by).applied++
		default:
			m.of(by).applied += strings.Count(after, by.mark) - strings.Count(before, by.mark)
			if !holds(after, before) && !by.way.lastWins {
				m.complain("%s of %s lost an update: %q became %q", by.way.name, by.mark, before, after)
			}
		}
	}
	if by != nil && m.ended[by] && !m.k.fault.doubled() {
		m.complain("a request of %s of %s changed what is there after its end", by.way.name, by.mark)
	}
	if by != nil && by.dry {
		m.complain("a dry run has written")
	}
	if by != nil && by.fence() > 0 && by.fence() < m.fence(m.now) {
		m.complain("the holder of fence %d wrote after that of %d", by.fence(), m.fence(m.now))
	}
	m.values = now
}

// holds reports whether every mark is in a text at least as often as in another.
func holds(text, other string) bool {
	return !strings.ContainsFunc(other, func(mark rune) bool {
		return strings.Count(text, string(mark)) < strings.Count(other, string(mark))
	})
}

// told notes the end of a call.
func (m *model) told(d *told) {
	t, ok := m.of(d), d.err == nil
	m.ended[d] = !errors.Is(d.err, optimistic.ErrOutcomeUnknown)
	since, done := m.done[d.id]
	switch {
	case ok && d.res.AlreadyApplied && (d.id == "" || t.applied == 0):
		m.complain("%s of %s was told that it had been applied", d.way.name, d.mark)
	case ok && (d.res.AlreadyApplied || d.dry):
	case ok:
		t.sure++
		if done && since < d.began {
			m.complain("%s of %s was carried out again", d.way.name, d.mark)
		}
		if f := m.fence(d.began); d.fence() > 0 && d.fence() < f {
			m.complain("the holder of fence %d was let in after that of %d", d.fence(), f)
		}
	case errors.Is(d.err, optimistic.ErrOutcomeUnknown):
		t.open++
	}
	if ok && !d.dry && m.forgotten < d.began { // what was forgotten during the call may have been its trace
		if d.id != "" && !done {
			m.done[d.id] = m.now
		}
		m.fences = append(m.fences, admitted{m.now, d.fence()})
	}
	if why := m.unexpected(d); why != "" {
		m.complain("%s of %s: %s: %v", d.way.name, d.mark, why, d.err)
	}
	if limit := map[bool]time.Duration{true: hung, false: patience}[m.k.fault.name == "hang"]; d.res.Elapsed > limit {
		m.complain("%s of %s took %v", d.way.name, d.mark, d.res.Elapsed)
	}
}

// unexpected returns why a call should have been told something else. What it was told has to be true in any case; this is about what
// it may be spared.
func (m *model) unexpected(d *told) string {
	k := m.k
	faulty, meanwhile := d.p == k.process && k.fault.name != "quiet", d == k.first && k.event.meanwhile != nil
	absent := len(m.values) == 0
	switch {
	case k.setting.idle() && d.way == k.way:
		if d.err == nil || errors.Is(d.err, optimistic.ErrOutcomeUnknown) {
			return "it has sent nothing"
		}
	case d.err == nil:
	case errors.Is(d.err, optimistic.ErrOutcomeUnknown):
		silent := d.way.traceless || d.bare || d.way.lastWins && meanwhile
		gone := meanwhile && (k.event.removes || k.event.facet == "tags" && d.way.facet == "content")                 // tags guard the content, and are no version
		creates := d.create || d.way.creates || d.way.blind && d.holder != nil                                        // there is no fence yet, so it is created
		doubt := faulty && (silent || gone || k.fault.givesUp || creates && (!k.fault.doubled() || k.event.loses)) || // without a trace, the second delivery may have met the first one
			d.always && (gone || k.event.copies || m.forgot > 0)
		if !doubt || k.fault.name == "busy" {
			return "it is known"
		}
	case errors.Is(d.err, fence.ErrFenced):
		if d.fence() >= m.fence(m.now) {
			return "nobody came later"
		}
	case errors.Is(d.err, optimistic.ErrConflict), errors.Is(d.err, optimistic.ErrNotFound):
		bound := d.named() || d.create || d.way.creates || d.tags != ""
		preempted := meanwhile && (k.event.moves && d.way.final || k.event.loses)
		if _, done := m.done[d.id]; done && d.id != "" && !(faulty && k.fault.givesUp) { // who gives up may not have looked
			return "the operation was carried out"
		}
		if !absent && !bound && !preempted {
			return "there is no conflict"
		}
	case !absent && !(faulty && (k.fault.name == "busy" || k.fault.givesUp)):
		return "it failed"
	}
	return ""
}

// count compares how often a mark was applied with what its calls were told.
func (m *model) count(mark string, t *tally) {
	k := m.k
	least, most := t.sure, t.sure+t.open
	if t.blind || t.way.lastWins {
		least = min(least, 1) // again is no change
	}
	if t.blind && k.fault.name != "quiet" && (t.way.lastWins || k.call.bare || k.fault.doubled() || k.event.removes) {
		most++ // over what came between, as it says
	}
	if t.id != "" {
		most = min(most, 1+m.forgot)
	}
	if t.applied < least || t.applied > most {
		m.complain("%s was applied %d times; %d calls were told that they were, %d that they may have been", mark, t.applied, t.sure, t.open)
	}
}
