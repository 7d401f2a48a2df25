//go:build !race

package pessimistic_test

import (
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
)

// TestNarrowMomentsOfLocks tries, by the model of the pairs, what these rarely meet: a lock that becomes free shortly before a wait ends,
// an outage that outlasts the lease of a call which is about to return, a break that a process with waiters knows of.
func TestNarrowMomentsOfLocks(t *testing.T) {
	waits := func(d time.Duration) *setting {
		return &setting{name: "waits " + d.String(), opts: pessimistic.LockOptions{MaxWait: d}}
	}
	plain, crew := &setting{name: "plain"}, &setting{name: "crew", crew: 2}
	for _, one := range []struct {
		name     string
		given    *setting
		from, to int // the requests at which the network fails
	}{
		{"Lock/nothing/quiet", plain, 1, 1},
		{"Lock/nothing/quiet", crew, 1, 1},
		{"Lock/break/quiet", crew, 1, 1},
		{"Lock/slow, then cut/quiet", plain, 1, 1},
		{"lease/slow, then cut/quiet", plain, 1, 1},
		{"Lock/nothing/quiet", waits(8 * time.Second), 1, 1},
		{"lease/nothing/quiet", waits(8 * time.Second), 1, 1},
		{"Lock/foreign before/request lost", waits(3100 * time.Millisecond), 26, 29},
		{"lease/foreign before/request lost", waits(3500 * time.Millisecond), 5, 5},
		{"lease/foreign before/answer lost", waits(3500 * time.Millisecond), 5, 5},
		{"read/nothing/long outage", plain, 5, 8},
	} {
		for at := one.from; at <= one.to; at++ {
			k := caseOf(one.name, one.given, at)
			if wrong, _ := k.run(t); len(wrong) > 0 {
				t.Errorf("%v\n\t%s", k, strings.Join(wrong, "\n\t"))
			}
		}
	}
}

// caseOf returns the case with this way, event and fault.
func caseOf(name string, given *setting, at int) combination {
	for _, w := range waysOf {
		for e := range eventsOf {
			for f := range faultsOf {
				if w.name+"/"+eventsOf[e].name+"/"+faultsOf[f].name == name {
					return combination{w, given, &eventsOf[e], &faultsOf[f], at}
				}
			}
		}
	}
	panic("there is no case " + name)
}
