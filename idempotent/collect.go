package idempotent

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/retry"
)

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
	c.pool.Run(func() { c.sweepNow(c.stopping) })
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
		" and expires lt datetime'" + before.Format(time.RFC3339) + "'"
	return k.sweeper.Step(ctx, filter, of(queue))
}
