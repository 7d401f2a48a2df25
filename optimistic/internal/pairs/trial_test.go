package pairs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// combination is one case: a way to write, what it is given, what the network does, and what happens beside it.
type combination struct {
	way     *way
	setting *setting
	fault   *fault
	event   *event
}

func (k combination) String() string {
	return fmt.Sprintf("%v/%s/%s/%s", k.way, k.setting.name, k.fault.name, k.event.name)
}

// trial is a combination in progress.
type trial struct {
	combination
	w       *world
	call    call // the one that is examined
	first   *told
	process *port  // that of the call
	late    func() // what the network delivers after the end
	exists  bool   // the case exists
}

// possible reports whether the case exists, and can be judged. What is left out is a limit that azconc states.
func (k combination) possible() bool {
	absent := k.way.creates || k.setting.name == "create"
	late := strings.HasSuffix(k.fault.name, "later")
	again := late || k.fault.doubled()
	quiet, beside := k.fault.name == "quiet", k.event.name != "nothing"
	switch {
	case !k.way.accepts(k.setting.name):
		return false
	case k.fault.rare.Kind != "" && (beside || k.setting.name != "plain" && !k.way.creates):
		return false
	case k.fault.doubled() && (k.way.traceless || k.setting.name == "no lineage"):
		return false // it looks like two writes
	case k.fault.doubled() && (k.event.meanwhile != nil || k.fault.givesUp) && k.way.name == "Copy":
		return false // a copy says so
	case k.way.name == "Copy" && absent && k.event.name == "overwritten by a copy meanwhile":
		return false // so it does here
	case again && absent && k.event.removes:
		return false // it is two
	case late && (k.way.blind || k.way.lastWins || strings.HasSuffix(k.setting.name, "*") || k.way.place.turns && k.setting.name == "lease"):
		return false // no condition keeps it from being carried out
	case k.setting.idle():
		return !beside || quiet && k.event.name == "rerun"
	case (!quiet || k.setting.name == "lease") && k.event.meanwhile != nil && k.way.place.turns:
		return false // a writer outside azconc is not noticed during a turn, and others wait for its end
	case k.setting.name == "lease" && k.event.loses, k.event.locked && !strings.Contains(k.setting.name, "holder"):
		return false
	case absent && (k.event.before != nil || quiet && k.event.exists):
		return false // there is nothing
	case k.event.drops && !slices.Contains(k.way.place.drops, k.way.facet):
		return false
	case !quiet && k.event.removes && k.way.positional, k.way.positional && k.event.name == "rerun meanwhile":
		return false // the position may be one in another blob; and two appends of the same bytes are not unique
	}
	return true
}

// run runs the case, with an outage, or a caller that gives up, at each of its requests, and returns what is wrong in the first run in
// which something is.
func (k combination) run(t *testing.T, number int) (wrong []string, last *world, runs int) {
	for at, more := 1, true; more && len(wrong) == 0; at++ {
		more = false
		synctest.Test(t, func(t *testing.T) {
			one := &trial{combination: k}
			wrong, more = one.once(t, fmt.Sprintf("%dx%d", number, at), at)
			last = one.w
		})
		runs++
	}
	return wrong, last, runs
}

func (k *trial) once(t *testing.T, name string, at int) (wrong []string, more bool) {
	k.exists = true
	k.w = open(t, k.way.place, name, k.setting.name == "create" || k.way.creates)
	k.call = call{mark: "a"}
	first := k.w.values
	if k.event.before != nil && !k.event.before(k) {
		return nil, false
	}
	if !k.setting.ready(k.w, k.way, &k.call) {
		return nil, false
	}
	if k.fault.doubled() {
		k.call.always = true // what repeats requests is on the path, so it is none whose conflicts are believed
	}
	var meanwhile func()
	if k.event.meanwhile != nil {
		meanwhile = func() { k.exists = k.event.meanwhile(k) }
	}
	p, begun := k.w.staged(*k.fault, at, k.way.skip, meanwhile)
	k.process = p
	k.first = k.w.do(p, k.way, k.call)
	if k.event.after != nil && !k.event.after(k) || !k.exists {
		return nil, false
	}
	p.flush()
	k.probe()
	wrong = k.judge(first)
	if len(wrong) > 0 {
		wrong[0] += k.w.story()
		if k.fault.outage != "" || k.fault.givesUp {
			wrong[0] += fmt.Sprintf("\n\t\t(at request %d)", at)
		}
	}
	return wrong, begun()
}

// probe looks what the operation became, and whether the resource can be written as before, which shall not take longer than before.
func (k *trial) probe() {
	if k.setting.idle() || len(k.w.values) == 0 {
		return
	}
	if k.call.id != "" {
		rerun(k)
	}
	if k.way.creates {
		return
	}
	c := call{mark: "p", lease: k.call.lease, tags: k.call.tags}
	if k.call.holder != nil {
		c.holder = holder(30, nil)
	}
	k.w.do(k.w.process(), k.way, c)
}
