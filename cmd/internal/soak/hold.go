package main

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/aztest/history"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/retry"
)

// holdCheck is how often a holder records that it holds.
const holdCheck = 40 * time.Millisecond

// holding is a hold, or a slot with a hold.
type holding interface {
	Context() context.Context
	Fence() fence.Token
	Valid() bool
	Release(context.Context) error
}

// hold records that a lane holds a lock from now on, for d, or until it no longer does. step, if any, is called at each
// record.
func (l *lane) hold(ctx context.Context, asked note, h holding, d time.Duration, step func(ctx context.Context)) {
	asked.V = int64(h.Fence())
	l.journal.end(asked, ok)
	for until := time.Now().Add(d); time.Now().Before(until); {
		at := now() // before the lease is asked: what is true afterwards may end in between
		if !h.Valid() || ctx.Err() != nil {
			return
		}
		l.journal.fact(note{Kind: "held", Lane: l.name, Of: asked.Of, V: asked.ID, Begin: at})
		if step != nil {
			step(ctx)
		}
		if retry.Sleep(ctx, holdCheck) != nil {
			return
		}
	}
}

// nonExclusive marks the notes of holds that do not exclude each other.
const nonExclusive = 1

// holds returns the holds of each resource, from the notes "ask" and "held". A hold ends when the service forgets
// its leases.
func (j *judgement) holds() map[string][]history.Hold {
	last := map[string]int64{} // when a process last knew that it had what it had asked for
	for _, n := range j.records.of("held") {
		last[fmt.Sprint(n.Process, " ", n.V)] = n.Begin
	}
	all := map[string][]history.Hold{}
	for _, n := range j.records.of("ask") {
		if n.Out != ok {
			continue
		}
		to := max(last[fmt.Sprint(n.Process, " ", n.ID)], n.End)
		for _, t := range j.troubles {
			if t.what == restart && t.to > n.Begin {
				to = min(to, max(t.from, n.End))
			}
		}
		all[n.Of] = append(all[n.Of], history.Hold{Who: n.Process + " " + n.Lane, Fence: n.V, Asked: time.Unix(0, n.Begin),
			From: time.Unix(0, n.End), To: time.Unix(0, to), Shared: n.N == nonExclusive})
	}
	return all
}

// known counts the holds whose clients have known that they held.
func known(holds []history.Hold) (n int) {
	for _, h := range holds {
		if h.To.After(h.From) {
			n++
		}
	}
	return n
}
