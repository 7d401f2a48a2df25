package main

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
	judge func(ctx context.Context, s *site, j *judgement) error
}

func chores() []chore {
	return []chore{
		{workTallies, judgeTallies}, {workTransfers, judgeTransfers}, {workLogs, judgeLogs}, {workRegisters, judgeRegisters},
		{workCreations, judgeCreations}, {workLocks, judgeLocks}, {workTurns, judgeTurns}, {workMessages, judgeMessages}, {workOnces, judgeOnces},
	}
}

// judgement collects what is found.
type judgement struct {
	records  records
	troubles []trouble
	verdicts []*verdict
}

// verdict is the judgement of one promise: how much was held against it, and what broke it.
type verdict struct {
	what     string
	judged   int
	problems []string
}

// mostProblems is how many problems of one kind are reported in full.
const mostProblems = 5

// say begins a verdict.
func (j *judgement) say(what string) *verdict {
	v := &verdict{what: what}
	j.verdicts = append(j.verdicts, v)
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

func (j *judgement) problems() (n int) {
	for _, v := range j.verdicts {
		n += len(v.problems)
	}
	return n
}

// trouble is a time in which what a process did may have stayed unknown to others: it was killed or stopped, its network
// was cut, or the service was away.
type trouble struct {
	process  string // empty: all
	what     string
	from, to int64
}

// troubled reports whether a process had trouble between two moments.
func (j *judgement) troubled(process string, from, to int64) bool {
	for _, t := range j.troubles {
		if (t.process == "" || t.process == process) && t.from < to && t.to > from {
			return true
		}
	}
	return false
}

// forgot reports whether the service forgot all leases between two moments: Azurite does when it is restarted.
func (j *judgement) forgot(from, to int64) bool {
	return slices.ContainsFunc(j.troubles, func(t trouble) bool { return t.what == restart && t.from < to && t.to > from })
}

// single judges the calls of one lane that each added 1 to a number that no other lane changes: note.N is what the change
// saw. It returns the least and the most that the number can be at the end.
func single(v *verdict, calls records) (least, most int64) {
	for _, c := range calls {
		v.judged++
		switch {
		case c.End == 0 || c.Out == unknown:
			most++
		case c.Out == ok && c.N < least:
			v.wrong("lost: %s in %s found %d of its changes, of which at least %d were applied", c.Lane, c.Of, c.N, least)
			least, most = c.N+1, c.N+1
		case c.Out == ok && c.N > most:
			v.wrong("applied twice: %s in %s found %d of its changes, and has made %d at most", c.Lane, c.Of, c.N, most)
			least, most = c.N+1, c.N+1
		case c.Out == ok:
			least, most = c.N+1, c.N+1
		}
	}
	return least, most
}

// closing judges the number that single has followed.
func closing(v *verdict, lane, of string, least, most, found int64) {
	if found < least {
		v.wrong("lost: %s in %s has %d changes, of which at least %d were applied", lane, of, found, least)
	}
	if found > most {
		v.wrong("applied twice: %s in %s has %d changes, and %d were made at most", lane, of, found, most)
	}
}
