package once

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/idempotent/internal/markers"
)

// GC deletes the results that were stored longer ago than age, by the clock of the process that stored them, and
// returns how many it deleted. A key whose result is deleted is treated as never used: age must be longer than any
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
