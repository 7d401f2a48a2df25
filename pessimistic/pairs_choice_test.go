//go:build !race

package pessimistic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// trials returns every case, in a random order that is the same in every run.
func trials() (all []combination) {
	for _, w := range waysOf {
		for s := range settingsOf {
			for e := range eventsOf {
				for f := range faultsOf {
					k := combination{w, &settingsOf[s], &eventsOf[e], &faultsOf[f], 1}
					if k.possible() {
						all = append(all, k)
					}
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		if all[i].fault.name != "quiet" {
			all[i].at = 1 + random.IntN(requests)
		}
	}
	return all
}

// requests is about how many a process sends in a case.
const requests = 24

// pairs returns the pairs of pieces that meet in a case.
func (k combination) pairs() (all [][2]string) {
	part := []string{"way " + k.way.name, "given " + k.setting.name, "event " + k.event.name, "network " + k.fault.name}
	for i, a := range part {
		for _, b := range part[:i] {
			all = append(all, [2]string{a, b})
		}
	}
	return all
}

// paired returns cases in which every pair meets, and the others. It takes those first that have the most new pairs.
func paired(all []combination) (chosen, others []combination) {
	met := map[[2]string]bool{}
	for least := 6; least > 0; least-- {
		others = nil
		for _, k := range all {
			fresh := slices.DeleteFunc(k.pairs(), func(p [2]string) bool { return met[p] })
			if len(fresh) < least {
				others = append(others, k)
				continue
			}
			for _, p := range fresh {
				met[p] = true
			}
			chosen = append(chosen, k)
		}
		all = others
	}
	return chosen, others
}

// story tells what has happened, in lines.
func (w *town) story() string {
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	add := func(at time.Time, format string, args ...any) {
		lines = append(lines, line{at, fmt.Sprintf(format, args...)})
	}
	for _, l := range w.leases {
		add(l.from, "%.8s leases %s for %v %s", l.id, l.resource, l.until.Sub(l.from), l.ended)
	}
	for _, s := range w.stamps {
		add(s.at, "stamped %s with %d", s.resource, s.fence)
	}
	for _, v := range w.visits {
		add(v.from, "%s holds %s (%.8s, %s, fence %d) for %v", v.p.name, v.name, v.id, v.kind, v.fence, v.to.Sub(v.from))
	}
	for _, c := range w.calls {
		add(c.began, "%s calls (%s), for %v: %d works, %v", c.p.name, c.kind, c.ended.Sub(c.began), c.works, c.err)
	}
	for _, one := range w.writes {
		add(one.began, "write %s on %s with %d: %v", one.mark, one.on, one.fence, one.err)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "\n\t\t%9v %s", l.at.Sub(w.began).Round(time.Millisecond), l.text)
	}
	if w.outage != nil {
		fmt.Fprintf(&b, "\n\t\tthe outage ended at %v", w.outage.End().Sub(w.began))
	}
	return b.String()
}
