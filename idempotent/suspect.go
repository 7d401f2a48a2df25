package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// A message that crashes its process does so again when it is redelivered, and the messages received with it are
// redelivered too. After two deliveries without a known outcome, a message is suspect: it is handled alone, and its
// starts are counted, in the message or in its marker, before they happen. Only those count for MaxDeliveries.

// suspicion is the number of deliveries without a known outcome that makes a message suspect.
const suspicion = 2

// screen decides whether a message is suspect, and returns why it is poison, if it is. Of a message whose counts do not
// outlive the process only the number of deliveries is known, of which up to MaxAttempts may have failed normally.
func (d *delivery) screen() error {
	if d.decoded != nil {
		return d.decoded
	}
	if d.exhausted(d.e.Attempts) { // and could not be moved to the poison queue
		return &failedOften{d.e.Attempts, errors.New(cmp.Or(d.e.LastError, "its last error is not recorded"))}
	}
	unexplained := d.m.Deliveries - 1 - d.e.Attempts - d.e.Excused - d.waited
	d.suspect = unexplained >= suspicion && (d.carries || d.known || unexplained >= d.c.o.MaxAttempts)
	starts := unexplained
	if d.carries || d.claim != nil {
		starts = d.e.Unfinished
	}
	if limit := d.c.o.MaxDeliveries; limit > 0 && starts >= limit {
		return fmt.Errorf("started %d times and never finished: its handler may crash the process", starts)
	}
	return nil
}

// countStart records that the handler of a suspect message starts. Requests: 1 for a message that carries its counts, which
// also extends its hiding; 1 for the marker of another message; none without a marker.
func (d *delivery) countStart(ctx context.Context) error {
	e := d.e
	e.Unfinished++
	switch {
	case d.carries:
		text, err := e.EncodeCounts()
		if err != nil {
			return &excused{err}
		}
		if err := d.receipt.Rewrite(ctx, d.window, text); err != nil {
			return &excused{err}
		}
	case d.claim == nil:
		return nil
	default:
		if err := d.claim.count(ctx, counts{e.Attempts, e.Excused, e.Unfinished}); err != nil {
			return &excused{err}
		}
	}
	d.e, d.counted = e, true
	return nil
}

// quarantine takes all seats for a suspect message. Meanwhile no message is received, and those that wait for a handler
// are given back. leave ends that, and must be called even after an error.
func (c *Consumer) quarantine(ctx context.Context) (leave func(), err error) {
	c.mu.Lock()
	if c.suspects++; c.suspects == 1 {
		close(c.crowded)
	}
	c.mu.Unlock()
	taken := 0
	leave = func() {
		for ; taken > 0; taken-- {
			<-c.seats
		}
		c.mu.Lock()
		if c.suspects--; c.suspects == 0 {
			c.crowded = make(chan struct{})
		}
		c.mu.Unlock()
		c.poke()
	}
	select {
	case c.alone <- struct{}{}:
		defer func() { <-c.alone }()
	case <-ctx.Done():
		return leave, errUnhandled
	case <-c.stopping.Done():
		return leave, errUnhandled
	}
	for taken < c.o.Concurrency {
		select {
		case c.seats <- struct{}{}:
			taken++
		case <-ctx.Done():
			return leave, errUnhandled
		case <-c.stopping.Done():
			return leave, errUnhandled
		}
	}
	c.settled(ctx)
	return leave, nil
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
