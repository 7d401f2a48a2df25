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
// redelivered too. After two deliveries without a known outcome, a message is suspect: its starts are counted, in the
// message or in its marker, before they happen, and only those count for MaxDeliveries.
//
// Most suspects are innocent, and their handlers may take long, so they are not handled one by one. At most half of the
// handlers run suspects, and the others run other messages. A suspect for which there is no room is given back: another
// consumer may have room. Each start without an outcome doubles the room that a suspect takes, so that the group with
// the guilty one is halved until that one runs without other suspects. If that ends the process too, and before the last
// start that MaxDeliveries allows, the suspect runs alone: no other handler runs.

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
	d.starts = unexplained
	if d.carries || d.claim != nil {
		d.starts = d.e.Unfinished
	}
	if limit := d.c.o.MaxDeliveries; limit > 0 && d.starts >= limit {
		return fmt.Errorf("started %d times and never finished: its handler may crash the process", d.starts)
	}
	return nil
}

// room returns how much of the room for suspects a suspect takes, and whether it runs alone.
func (d *delivery) room() (n int, alone bool) {
	o := &d.c.o
	all, died := cap(d.c.suspects), d.starts
	if !d.carries && d.claim == nil {
		died = max(0, died-max(suspicion, o.MaxAttempts)) // of which the first may have failed, see screen
	}
	n = 1
	for range died {
		if n >= all { // no other suspect ran beside it
			return all, true
		}
		n = min(2*n, all)
	}
	return n, o.MaxDeliveries > 0 && d.starts >= o.MaxDeliveries-1
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

// admitSuspect waits for what a suspect needs to run: room among the suspects, and a seat, or all seats if it runs alone. Meanwhile no
// message is received, and those that wait for a handler are given back. leave ends that, and must be called even after an error.
func (c *Consumer) admitSuspect(ctx context.Context, d *delivery) (leave func(), err error) {
	n, alone := d.room()
	room, seats, closed := 0, 0, false
	leave = func() {
		for ; seats > 0; seats-- {
			<-c.seats
		}
		for ; room > 0; room-- {
			<-c.suspects
		}
		if closed {
			c.closeSeats(-1)
		}
		c.poke()
	}
	if err := d.take(ctx, c.entering, d.stale); err != nil {
		return leave, err
	}
	defer func() { <-c.entering }()
	for ; room < n; room++ {
		if err := d.take(ctx, c.suspects, d.stale); err != nil {
			return leave, err
		}
	}
	want, stale := 1, d.stale
	if alone {
		want, stale, closed = cap(c.seats), nil, true
		c.closeSeats(+1)
	}
	for ; seats < want; seats++ {
		if err := d.take(ctx, c.seats, stale); err != nil {
			return leave, err
		}
	}
	if alone {
		c.settled(ctx)
	}
	return leave, nil
}

// take takes a place for a suspect, unless it has waited too long.
func (d *delivery) take(ctx context.Context, places chan<- struct{}, stale <-chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-stale:
		return errGrouped
	case <-ctx.Done():
	case <-d.c.stopping.Done():
	}
	return errUnhandled
}

// closeSeats adds to the number of suspects that run alone, or wait for that.
func (c *Consumer) closeSeats(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.alone
	switch c.alone += n; {
	case was == 0:
		close(c.crowded)
	case c.alone == 0:
		c.crowded = make(chan struct{})
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

// crowd returns a channel that is closed while a suspect runs alone, or waits for that.
func (c *Consumer) crowd() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crowded
}
