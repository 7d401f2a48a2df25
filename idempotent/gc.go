package idempotent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/retry"
)

// GC deletes the markers of a queue whose messages can no longer arrive, and returns how many it deleted; markers of
// messages that never expire are kept. Errors: why markers cannot be listed or deleted; markers deleted before the
// error are counted. Requests: 1 per 1000 markers of the queue, and 1 per 100 deleted.
func (k *Markers) GC(ctx context.Context, queue string) (deleted int, err error) {
	// The day follows the name, after a hyphen; "." is the next character after the hyphen and occurs in no name.
	filter := "PartitionKey ge " + markers.Quoted(queue) + " and PartitionKey lt " + markers.Quoted(queue+".") + " and " + expiredNow()
	return markers.DeleteExpired(ctx, k.table, filter, of(queue))
}

// expiredNow is the filter of markers whose messages can no longer arrive.
func expiredNow() string { return markers.ExpiredBefore(time.Now().Add(-markers.Slack)) }

// of returns which entities are markers of a queue.
func of(queue string) func(markers.Key) bool {
	return func(key markers.Key) bool {
		day, ok := strings.CutPrefix(key.Partition, queue)
		return ok && markers.IsRow(key.Row) && (day == "" || len(day) == len("-20060102") && strings.Trim(day[1:], "0123456789") == "")
	}
}

// GC deletes a partition's markers of messages that can no longer arrive, and returns how many it deleted; markers of
// messages that never expire are kept. Errors: why markers cannot be listed or deleted; markers deleted before the
// error are counted. Requests: 1 per 1000 markers in the partition, and 1 per 100 deleted.
func (i *Inbox) GC(ctx context.Context, partition string) (deleted int, err error) {
	filter := "PartitionKey eq " + markers.Quoted(partition) + " and RowKey ge " + markers.Quoted(inboxPrefix) + " and RowKey lt " + markers.Quoted(strings.TrimSuffix(inboxPrefix, "-")+".") + " and " + expiredNow()
	return markers.DeleteExpired(ctx, i.table, filter, func(key markers.Key) bool { return strings.HasPrefix(key.Row, inboxPrefix) })
}

// A Consumer deletes expired markers in passing: after each 1000 requests to its queue, a step of up to 1000 markers. A marker costs
// the thousandth part of a query and the hundredth of a transaction to delete, once, and its message cost 2.1 requests to send and to
// handle: that is half a percent.

// sweep makes a step of the collection if enough requests have been sent since the last one.
func (c *Consumer) sweep() {
	k := c.o.Markers
	if n := c.requests.Load(); k == nil || k.o.KeepExpired || n-c.swept < markers.SweepEvery {
		return
	}
	c.swept = c.requests.Load()
	c.tasks.Go(func() { c.sweepNow(c.stopping) })
}

// lastSweep makes a step as often as it is due, if this Consumer ends before a thousand requests as all of its kind do: those that end
// when the queue is empty. They have no other memory than their number.
func (c *Consumer) lastSweep(ctx context.Context) {
	k := c.o.Markers
	if k == nil || k.o.KeepExpired || !c.o.ExitWhenEmpty && c.o.MaxMessages == 0 || c.handled.Load() == 0 || ctx.Err() != nil {
		return
	}
	if since := float64(c.requests.Load() - c.swept); retry.Random(ctx)*markers.SweepEvery < since {
		ctx, cancel := retry.Detached(ctx, send.TryTimeout)
		defer cancel()
		c.sweepNow(ctx)
	}
}

// sweepNow makes a step. The work does not depend on it: an error is reported.
func (c *Consumer) sweepNow(ctx context.Context) {
	if _, err := c.o.Markers.sweep(ctx, markers.QueueName(c.queue.Path)); err != nil && ctx.Err() == nil {
		c.failed(fmt.Errorf("expired markers are not deleted: %w", err))
	}
}

// sweep deletes expired markers of a queue. By the days in the keys, it looks at no day that is too young to have any; those without
// a day are in one partition, which comes first.
func (k *Markers) sweep(ctx context.Context, queue string) (deleted int, err error) {
	before := time.Now().UTC().Add(-markers.Slack)
	day := before.Add(-k.o.Keep-queues.Week).AddDate(0, 0, 1)
	filter := "PartitionKey ge " + markers.Quoted(queue) + " and PartitionKey lt " + markers.Quoted(queue+day.Format("-20060102")) +
		" and " + markers.ExpiredBefore(before)
	return k.sweeper.Step(ctx, filter, of(queue))
}
