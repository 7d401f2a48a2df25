package main

import (
	"fmt"
	"sync"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/conformance"
)

// scenarios are the promises of the libraries, one section for each. The table shows the promise as the expectation.
func scenarios() []section {
	lib := func(name, promise string, run func(conformance.T, *rig), service string, needs ...string) section {
		return section{Section: conformance.Section{Name: name, Service: service}, promise: promise, needs: needs, lib: run}
	}
	return []section{
		lib("update", "optimistic.Update", updateBlob, "blob"),
		lib("document", "optimistic.Document", foldUpdates, "blob"),
		lib("leases", "pessimistic.Acquire", holdLease, "blob"),
		lib("locks", "pessimistic.Locker", lockAndFence, "blob"),
		lib("entities", "optimistic.Update", updateEntity, "table"),
		lib("transactions", "optimistic/tables.Transact", transact, "table"),
		lib("consumer", "idempotent.Consumer", consume, "queue", "table"),
		lib("inbox", "idempotent.Inbox", inbox, "queue", "table"),
		lib("once", "once.Do", once, "blob", "table"),
		lib("files", "files.Update", updateFile, "file"),
	}
}

// lose drops the response to the next request of one of the operations, after it has arrived.
func (r *rig) lose(operations ...string) {
	r.faults.Reset()
	r.faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op(operations...), Count: 1})
}

// lost ends the effect of lose. It is an error if no response to an applied request was lost, because the scenario
// would have shown nothing.
func (r *rig) lost(t conformance.T) {
	t.Helper()
	r.faults.SetFaults()
	for _, request := range r.faults.Log() {
		if request.Fault == aztest.LoseAnswer {
			return
		}
	}
	t.Error("no response was lost")
}

// contend runs f n times in each of several goroutines at once, and returns how many of the calls succeeded.
func contend(goroutines, n int, f func() error) (succeeded int, last error) {
	var group sync.WaitGroup
	var mu sync.Mutex // guards the results
	for range goroutines {
		group.Go(func() {
			for range n {
				err := f()
				mu.Lock()
				if err == nil {
					succeeded++
				} else {
					last = err
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return succeeded, last
}

// show adds a row with a result.
func show(t conformance.T, question string, want, got any) {
	t.Answered(conformance.Answer{Question: question, Expected: fmt.Sprint(want), Answered: fmt.Sprint(got)})
}

// outcome returns an error as the table shows it: "ok", or its summary.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return azerr.Summary(err)
}

// is reports whether an error is the expected one.
func is(t conformance.T, question, want string, err error, matches bool) {
	got := want
	if !matches {
		got = outcome(err)
	}
	show(t, question, want, got)
}
