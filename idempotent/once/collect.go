package once

import (
	"context"
	"fmt"
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

// sweep deletes up to 1000 results and counts of attempts whose time has passed: those of all keys, or those of a series before a key. A
// series is in the order of its times: the oldest come first.
func (o *Once) sweep(ctx context.Context, series, before string) (deleted int, err error) {
	ctx, end := o.span(ctx, "once.Collect", "")
	defer func() { end(err) }()
	within := "PartitionKey eq " + markers.Quoted(o.partition)
	if series != "" {
		within += " and RowKey ge " + markers.Quoted(row(series)) + " and RowKey lt " + markers.Quoted(row(before))
	}
	return o.sweeper.Step(ctx, within, func(markers.Key) bool { return true })
}

// GC deletes the results that were stored longer ago than age, by the clock of the process that stored them, and
// returns how many are known to be deleted. A key whose result is deleted is treated as never used: age must be longer than any
// retry may take. Results of Lockers with another container or prefix are kept, and so are locks: see Locker.GC.
//
// Errors: why results cannot be listed or deleted; results deleted before the error are counted. Requests: 1 per 1000
// results that old, and 1 per 100 deleted.
func (o *Once) GC(ctx context.Context, age time.Duration) (deleted int, err error) {
	ctx, end := o.span(ctx, "once.GC", "")
	defer func() { end(err) }()
	if age <= 0 {
		return 0, fmt.Errorf("once: GC: an age of %v would delete results that are still in use", age)
	}
	before := time.Now().Add(-age).UTC().Format("2006-01-02T15:04:05.0000000Z")
	filter := "PartitionKey eq " + markers.Quoted(o.partition) + " and at lt datetime'" + before + "'"
	deleted, err = markers.DeleteExpired(ctx, o.table, filter, func(markers.Key) bool { return true })
	if markers.Missing(err) {
		return 0, nil
	}
	return deleted, err
}
