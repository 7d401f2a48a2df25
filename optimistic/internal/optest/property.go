package optest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// Property is the promise of every target: an operation is applied at most once; success means once, a conflict not at all, and only an
// unknown outcome may be either. Writers apply operations one after the other, and each judges the last one by what the next one finds.
type Property struct {
	Service *aztest.Service
	Faults  []aztest.Fault // while the writers are at work
	Each    int            // operations of each writer
	OneTry  int            // one in so many operations is tried once, so that conflicts reach the caller, too
	Naive   bool           // an unknown outcome is taken for a conflict, as loops without a lineage do
	Writers []Writer
}

// Writer applies operation n, in so many attempts, to what one writer alone changes in the resource, and returns the operation that it
// found there. optimistic.ErrSkip is no outcome: the operation comes again.
type Writer func(n, attempts int) (found int, err error)

// Verdicts counts the outcomes of a property.
type Verdicts struct {
	Operations, Success, Conflict, Unknown int
	Violations                             []string
}

func (v *Verdicts) add(other Verdicts) {
	v.Operations += other.Operations
	v.Success += other.Success
	v.Conflict += other.Conflict
	v.Unknown += other.Unknown
	v.Violations = append(v.Violations, other.Violations...)
}

// Unreliable returns faults of the requests that match: responses and requests that are lost, and writes that are late or repeated.
func Unreliable(match func(*aztest.Request) bool) []aztest.Fault {
	return []aztest.Fault{
		{Kind: aztest.LoseAnswer, Match: match, Probability: 0.04},
		{Kind: aztest.FailAfterCommit, Match: match, Probability: 0.02},
		{Kind: aztest.LoseRequest, Match: match, Probability: 0.02},
		{Kind: aztest.DelayCommit, Match: match, Probability: 0.02, Delay: 300 * time.Millisecond},
		{Kind: aztest.Throttle, Match: match, Probability: 0.01, RetryAfter: time.Second},
		{Kind: aztest.AnswerTwice, Match: match, Probability: 0.02},
	}
}

// Run lets the writers work at the same time, in a bubble. One operation more of each judges its last one, after what was under way has
// arrived.
func (p Property) Run() (all Verdicts) {
	p.Service.SetFaults(p.Faults...)
	logs := make([]log, len(p.Writers))
	var wg sync.WaitGroup
	for me, write := range p.Writers {
		wg.Go(func() {
			for l := &logs[me]; l.n < p.Each; {
				attempts := -1
				if (l.n+1)%p.OneTry == 0 {
					attempts = 1
				}
				l.next(fmt.Sprint("writer ", me), write, attempts, p.Naive)
			}
		})
	}
	wg.Wait()
	p.Service.SetFaults()
	p.Service.Flush()
	for me, write := range p.Writers {
		logs[me].next(fmt.Sprint("writer ", me), write, -1, p.Naive)
		all.add(logs[me].Verdicts)
	}
	return all
}

// log is what a writer knows.
type log struct {
	Verdicts
	n, applied, open int // the last operation, the last one that is known to be applied, and one that may be
}

func (l *log) next(me string, write Writer, attempts int, naive bool) {
	n := l.n + 1
	found, err := write(n, attempts)
	complain := func(format string, args ...any) {
		l.Violations = append(l.Violations, fmt.Sprintf("%s, operation %d: ", me, n)+fmt.Sprintf(format, args...))
	}
	switch {
	case found == n:
		complain("is about to be applied twice")
	case found != l.applied && (l.open == 0 || found != l.open):
		complain("found %d applied last, want %d (or %d): %v", found, l.applied, l.open, err)
	case found == l.open && l.open != 0:
		l.applied = l.open
	}
	if l.open = 0; errors.Is(err, optimistic.ErrSkip) {
		return
	}
	l.n = n
	l.Operations++
	switch {
	case err == nil:
		l.Success++
		l.applied = n
	case errors.Is(err, optimistic.ErrOutcomeUnknown):
		l.Unknown++
		if l.open = n; naive {
			l.n--
		}
	case errors.Is(err, optimistic.ErrConflict):
		l.Conflict++
	default:
		complain("%v", err)
	}
}

// Holds plays with so many seeds, each in a bubble, fails the test if an operation was applied twice or lost, and returns what all came to.
func Holds(t *testing.T, seeds int, play func(t *testing.T, seed uint64) Verdicts) (all Verdicts) {
	t.Helper()
	for n := range uint64(seeds) {
		seed := *FirstSeed + n
		synctest.Test(t, func(t *testing.T) {
			v := play(t, seed)
			for _, violation := range v.Violations {
				t.Errorf("seed %d: %s", seed, violation)
			}
			all.add(v)
		})
	}
	t.Logf("%d operations: %d applied, %d conflicts, %d unknown", all.Operations, all.Success, all.Conflict, all.Unknown)
	return all
}

// Convicts plays what has a mistake.
func Convicts(t *testing.T, play func(t *testing.T, seed uint64) Verdicts) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if v := play(t, 1); len(v.Violations) == 0 {
			t.Errorf("%d operations, %d unknown: nothing was found", v.Operations, v.Unknown)
		}
	})
}

// UnderEvery runs a test with each of the faults of Every, in a bubble.
func UnderEvery(t *testing.T, name string, match func(*aztest.Request) bool, test func(t *testing.T, name string, fault aztest.Fault)) {
	for fault, f := range Every(match) {
		t.Run(name+"/"+fault, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, fault, f) }) })
	}
}
