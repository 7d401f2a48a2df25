//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package pairs

import (
	"flag"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// sampled is how many of the cases beyond the pairs a run without -short tries, always the same ones; beyond is for how long others are
// tried then, which chance selects.
const sampled = 1500

var beyond = flag.Duration("beyond", 0, "how long further cases beyond the pairs are tried, without -short")

// only selects cases by a part of their names, and shows what is wrong with them.
var only = flag.String("only", "", "the cases to run, as a regular expression for way/setting/fault/event")

var placesOf = []*place{blobPlace, entityPlace, pagesPlace, appendPlace, recordPlace, containerPlace, queuePlace, counterPlace}

// trials returns every case at a place, in a random order that is the same in every run.
func trials(pl *place, ways []*way) (cases []combination) {
	events, all := eventsAt(pl, ways), append(slices.Clone(faults), rarely()...)
	for _, w := range ways {
		for s := range settingsOf {
			for f := range all {
				for e := range events {
					if k := (combination{w, &settingsOf[s], &all[f], &events[e]}); w.place == pl && k.possible() {
						cases = append(cases, k)
					}
				}
			}
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	return cases
}

func allTrials() (all []combination) {
	ways := append(append(blobWays(), entityWays()...), otherWays()...)
	for _, pl := range placesOf {
		all = append(all, trials(pl, ways)...)
	}
	return all
}

// pairs returns the pairs of a way, a setting, a fault and an event that meet in a case.
func (k combination) pairs() (all [][2]any) {
	part := [...]any{k.way, k.setting, k.fault, k.event}
	for i, a := range part {
		for _, b := range part[:i] {
			all = append(all, [2]any{a, b})
		}
	}
	return all
}

// paired returns cases in which every pair meets, and the others. It takes those first that have the most new pairs.
func paired(all []combination) (chosen, others []combination) {
	met := map[[2]any]bool{}
	for _, k := range all {
		if slices.Contains(seen, k.String()) {
			chosen = append(chosen, k)
			for _, p := range k.pairs() {
				met[p] = true
			}
		} else {
			others = append(others, k)
		}
	}
	all = others
	for least := 6; least > 0; least-- {
		others = nil
		for _, k := range all {
			var fresh [][2]any
			for _, p := range k.pairs() {
				if !met[p] {
					fresh = append(fresh, p)
				}
			}
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

// verdicts collects what is wrong.
type verdicts struct {
	t     *testing.T
	cases int
	runs  int
	left  []string // of those that were wrong once
}

func (v *verdicts) try(k combination) {
	if i := slices.Index(v.left, k.String()); i >= 0 {
		v.left = slices.Delete(v.left, i, i+1)
	}
	wrong, _, runs := k.run(v.t, v.cases)
	v.cases++
	v.runs += runs
	if len(wrong) > 0 {
		v.t.Errorf("%v\n\t%s", k, strings.Join(wrong, "\n\t"))
	}
}

// TestOnly runs the cases that -only selects.
func TestOnly(t *testing.T) {
	if *only == "" {
		t.Skip("SKIP: -only selects no case")
	}
	chosen := regexp.MustCompile(*only)
	for i, k := range allTrials() {
		if !chosen.MatchString(k.String()) {
			continue
		}
		if wrong, w, runs := k.run(t, i); len(wrong) > 0 {
			t.Errorf("%v\n\t%s", k, strings.Join(wrong, "\n\t"))
		} else {
			t.Logf("%v: right in %d runs%s", k, runs, w.story())
		}
	}
}

// TestPiecesInCombination runs cases in which every pair of a way to write, what it is given, what the network does and what happens
// beside it meets. With -short, a sixth of them; without, also a sample of the others.
func TestPiecesInCombination(t *testing.T) {
	ways := append(append(blobWays(), entityWays()...), otherWays()...)
	v := &verdicts{t: t, left: slices.Clone(seen)}
	var rest []combination
	for _, pl := range placesOf {
		chosen, others := paired(trials(pl, ways))
		for n, k := range chosen {
			if !testing.Short() || n%6 == 0 || slices.Contains(seen, k.String()) {
				v.try(k)
			}
		}
		rest = append(rest, others...)
	}
	if len(v.left) > 0 {
		t.Errorf("there are no such cases any more: %q", v.left)
	}
	t.Logf("%d cases of pairs, %d runs", v.cases, v.runs)
	if testing.Short() {
		return
	}
	rand.New(rand.NewPCG(40, 12)).Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for _, k := range rest[:sampled] {
		v.try(k)
	}
	rest = rest[sampled:]
	rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for end := time.Now().Add(*beyond); len(rest) > 0 && time.Now().Before(end); rest = rest[1:] {
		v.try(rest[0])
	}
	t.Logf("%d cases of %d", v.cases, len(rest))
}
