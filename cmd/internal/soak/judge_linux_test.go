package soak

import (
	"context"
	"fmt"
	"slices"
)

// chore is one part of the workload: what workers do with one kind of azconc's operations, and the proof that it went
// well.
type chore struct {
	// work does the chore in a worker, until ctx ends. Once the weather is over it only finishes what was begun.
	work func(ctx context.Context, w *worker)
	// judge holds what the journals say against what the service has.
	judge func(ctx context.Context, s *soak) error
}

var chores = []chore{
	{workTallies, judgeTallies}, {workLocks, judgeLocks}, {workTurns, judgeHolds}, {workMessages, judgeMessages}, {workOnces, judgeOnces},
}

// verdict is the judgement of one promise: how much was held against it, and what broke it.
type verdict struct {
	what     string
	judged   int
	problems []string
}

// say begins a verdict.
func (s *soak) say(what string) *verdict {
	v := &verdict{what: what}
	s.verdicts = append(s.verdicts, v)
	return v
}

func (v *verdict) wrong(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// check adds an error, if there is one.
func (v *verdict) check(err error) {
	if err != nil {
		v.wrong("%v", err)
	}
}

// trouble is a time in which what a process did may have stayed unknown to others: it was killed or stopped, its network
// was cut, or the service was away.
type trouble struct {
	process  string // empty: all
	what     string
	from, to int64
}

// troubled reports whether a process had trouble between two moments.
func (s *soak) troubled(process string, from, to int64) bool {
	return slices.ContainsFunc(s.troubles, func(t trouble) bool {
		return (t.process == "" || t.process == process) && t.from < to && t.to > from
	})
}

// count judges the calls of one lane that each added 1 to a number that no other lane changes: note.N is what the change
// saw, and found is the number at the end.
func (v *verdict) count(lane, of string, calls records, found int64) {
	var least, most int64
	for _, c := range calls {
		v.judged++
		if c.End == 0 || c.Out == unknown {
			most++
		}
		if c.Out != ok {
			continue
		}
		v.between(lane, of, least, most, c.N)
		least, most = c.N+1, c.N+1
	}
	v.between(lane, of, least, most, found)
}

// between judges a number of changes.
func (v *verdict) between(lane, of string, least, most, found int64) {
	if found < least {
		v.wrong("lost: %s in %s has %d changes, of which at least %d were applied", lane, of, found, least)
	}
	if found > most {
		v.wrong("applied twice: %s in %s has %d changes, and %d were made at most", lane, of, found, most)
	}
}
