package idempotent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/retry"
)

// GC deletes the markers of a queue whose messages can no longer arrive, and returns how many are known to be deleted; markers of
// messages that never expire are kept. Errors: why markers cannot be listed or deleted; markers deleted before the
// error are counted. Requests: 1 per 1000 markers of the queue, and 1 per 100 deleted.
func (k *Markers) GC(ctx context.Context, queue string) (deleted int, err error) {
	// The day follows the name, after a hyphen; "." is the next character after the hyphen and occurs in no name.
	filter := "PartitionKey ge " + markers.Quoted(queue) + " and PartitionKey lt " + markers.Quoted(queue+".") + " and " + markers.Expired()
	return markers.DeleteExpired(ctx, k.table, filter, of(queue))
}

// of returns which entities are markers of a queue.
func of(queue string) func(markers.Key) bool {
	return func(key markers.Key) bool {
		day, ok := strings.CutPrefix(key.Partition, queue)
		return ok && markers.IsRow(key.Row) && (day == "" || len(day) == len("-20060102") && strings.Trim(day[1:], "0123456789") == "")
	}
}

// GC deletes a partition's markers of messages that can no longer arrive, and returns how many are known to be deleted; markers of
// messages that never expire are kept. Apply deletes them in passing, so GC is for partitions in which nothing is applied any
// more, and for InboxOptions.KeepExpired. Errors: why markers cannot be listed or deleted; markers deleted before the
// error are counted. Requests: 1 per 1000 markers in the partition, and 1 per 100 deleted.
func (i *Inbox) GC(ctx context.Context, partition string) (deleted int, err error) {
	rows := inboxRows(partition, inboxPrefix, strings.TrimSuffix(inboxPrefix, "-")+".")
	return markers.DeleteExpired(ctx, i.table, rows+" and "+markers.Expired(), isInboxRow)
}

// inboxRows is the filter of the rows of a partition from one on and before another.
func inboxRows(partition, from, before string) string {
	return "PartitionKey eq " + markers.Quoted(partition) + " and RowKey ge " + markers.Quoted(from) + " and RowKey lt " + markers.Quoted(before)
}

func isInboxRow(key markers.Key) bool { return strings.HasPrefix(key.Row, inboxPrefix) }

// collectEvery is how many effects are applied, on average, until an Inbox makes a step of the collection in the partition of the
// last one. Each has cost 2 requests, with its message, and a step sends 11 at most: that is less than a hundredth.
const collectEvery = 600

// collect makes a step, by chance: a process that applies few effects has no other memory, and the more are applied to a partition, the
// more steps are made there. The span has its error, which the work does not depend on.
func (i *Inbox) collect(ctx context.Context, m *Message, partition string) {
	if i.sweeper == nil || retry.Random(ctx)*collectEvery >= 1 {
		return
	}
	ctx, cancel := retry.Detached(ctx, send.TryTimeout)
	defer cancel()
	_, _ = i.sweep(ctx, m, partition)
}

// sweep deletes up to 1000 expired markers of the queue of a message. A UUID of version 7 begins with its time, so that the markers of
// those are in the order of their times, and it looks at none that is too young; for a message with another id it looks at all.
func (i *Inbox) sweep(ctx context.Context, m *Message, partition string) (deleted int, err error) {
	ctx, end := i.span(ctx, "idempotent.Collect", m)
	defer func() { end(err) }()
	from := inboxPrefix + markers.QueueName(m.Queue) + "."
	before := strings.TrimSuffix(from, ".") + "/"
	if id, err := uuid.Parse(m.Key); err == nil && id.Version() == 7 {
		day := time.Now().Add(-i.keep-markers.Slack).Truncate(24*time.Hour).AddDate(0, 0, 1)
		before = from + fmt.Sprintf("%012x", day.UnixMilli())[:8]
	}
	return i.sweeper.Step(ctx, inboxRows(partition, from, before), isInboxRow)
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
	day := time.Now().UTC().Add(-markers.Slack-k.o.Keep-queues.Week).AddDate(0, 0, 1)
	within := "PartitionKey ge " + markers.Quoted(queue) + " and PartitionKey lt " + markers.Quoted(queue+day.Format("-20060102"))
	return k.sweeper.Step(ctx, within, of(queue))
}
