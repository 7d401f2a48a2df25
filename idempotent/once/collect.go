package once

import (
	"context"
	"time"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/retry"
)

// leastKeep is the least value of Options.Keep.
const leastKeep = time.Hour

// collectEvery is how many keys are finished, on average, until one of their processes makes a step of the collection. Each has cost 8
// requests and more, and its result a thousandth of a query and a hundredth of a transaction to delete, as its count of attempts.
const collectEvery = 250

// expiry returns when something that is stored now may be deleted: never, which is the zero time, if nothing is said of it.
func expiry(keep time.Duration) time.Time {
	if keep == 0 {
		return time.Time{}
	}
	return time.Now().UTC().Add(keep)
}

// collect makes a step of the collection, by chance: a process that finishes one key has no other memory. The span has its error, which the work does
// not depend on.
func (a *Run) collect(ctx context.Context) {
	if a.Keep == 0 || retry.Random(ctx)*collectEvery >= 1 {
		return
	}
	ctx, cancel := retry.Detached(ctx, send.TryTimeout)
	defer cancel()
	_, _ = a.once.sweep(ctx, a.Series, a.key)
}

// sweep deletes up to 1000 results and counts of attempts whose time has passed: those of all keys, or those of a series before a key.
func (o *Once) sweep(ctx context.Context, series, before string) (deleted int, err error) {
	ctx, end := o.span(ctx, "once.Collect", "")
	defer func() { end(err) }()
	filter := "PartitionKey eq " + markers.Quoted(o.partition) + " and expires lt datetime'" + time.Now().UTC().Add(-markers.Slack).Format(time.RFC3339) + "'"
	sweeper := o.sweeper
	if series != "" { // it is in the order of its times: the oldest come first
		sweeper = &markers.Sweep{Table: o.table}
		filter += " and RowKey ge " + markers.Quoted(row(series)) + " and RowKey lt " + markers.Quoted(row(before))
	}
	return sweeper.Step(ctx, filter, func(markers.Key) bool { return true })
}
