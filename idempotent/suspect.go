package idempotent

import (
	"context"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/retry"
)

// A message that crashes its process does so again when it is redelivered, and the messages received with it are
// redelivered too. After two deliveries without a known outcome, a message is suspect: it is handled alone, and its
// starts are counted, in the message or in its marker, before they happen. Only those count for MaxDeliveries.

// suspicion is the number of deliveries without a known outcome that makes a message suspect.
const suspicion = 2

// carries reports whether the counts of a message outlive the process.
func (c *Consumer) carries(d *delivery) bool {
	return d.e.as == Envelope || c.o.Dedupe == DedupeOwner || c.o.Dedupe == DedupeComplete
}

// unexplained returns how many earlier deliveries have no known outcome.
func (c *Consumer) unexplained(d *delivery) int {
	return d.m.Deliveries - 1 - d.e.Attempts - d.e.Excused - d.waited
}

// suspect reports whether a message may have crashed its process. For one that carries no counts only the number of
// deliveries is known, of which up to MaxAttempts may have failed normally.
func (c *Consumer) suspect(d *delivery) bool {
	if d.e.as == Envelope || d.known {
		return c.unexplained(d) >= suspicion
	}
	return c.unexplained(d) >= max(suspicion, c.o.MaxAttempts)
}

// spent reports whether a message has used up MaxDeliveries, and how many starts or deliveries are known.
func (c *Consumer) spent(d *delivery) (n int, spent bool) {
	if c.carries(d) {
		n = d.e.Unfinished
	} else {
		n = c.unexplained(d)
	}
	return n, c.o.MaxDeliveries > 0 && n >= c.o.MaxDeliveries
}

// countStart records that the handler of a suspect message starts. Requests: 1 for an envelope, which also extends its
// hiding; otherwise 1 for its marker.
func (c *Consumer) countStart(ctx context.Context, d *delivery) error {
	if !c.carries(d) || !c.suspect(d) {
		return nil
	}
	e := d.e
	e.Unfinished++
	if e.as == Envelope {
		text, err := e.encode(Envelope)
		if err != nil {
			return nil // there is no room for it
		}
		if err := d.receipt.rewrite(ctx, d.window, text); err != nil {
			return &excused{err}
		}
	} else {
		partition, row := partitionOf(c.path, d.m.Key), rowOf(d.m.Key)
		counts := d.counts()
		counts.Unfinished++
		if _, err := tables.Transact(ctx, c.o.Markers.table, partition, func(_ context.Context, tx *tables.Tx) error {
			return tx.Merge(row, counts)
		}, &tables.TransactOptions{Sending: optimistic.Sending{Tries: markerTries, TryTimeout: tryTimeout}}); err != nil {
			return &excused{c.o.Markers.failed(err)}
		}
	}
	d.e, d.counted = e, true
	return nil
}

// quarantine stops the receiving of messages, and gives back those that wait for a handler, until release is called.
func (c *Consumer) quarantine() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspects++; c.suspects == 1 {
		close(c.crowded)
	}
	return func() {
		c.mu.Lock()
		if c.suspects--; c.suspects == 0 {
			c.crowded = make(chan struct{})
		}
		c.mu.Unlock()
		c.poke()
	}
}

// settled waits until the messages that were handled before are settled, for up to 5 s. If a suspect message crashed the
// process earlier, they would be redelivered with it, and become suspect too.
func (c *Consumer) settled(ctx context.Context) {
	for began := time.Now(); time.Since(began) < 5*time.Second; {
		c.mu.Lock()
		busy := c.stock[running] + c.stock[closing]
		c.mu.Unlock()
		if busy == 0 || retry.Sleep(ctx, linger) != nil {
			return
		}
	}
}

// crowd returns a channel that is closed while a suspect message waits to be handled alone.
func (c *Consumer) crowd() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crowded
}
