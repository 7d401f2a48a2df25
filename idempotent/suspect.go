package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/azconc/azconc/pkg/retry"
)

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
	unexplained := d.m.Deliveries - 1 - d.e.Attempts - d.e.Excused
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

// roomForSuspects is how many handlers of suspects run beside so many others.
func roomForSuspects(concurrency int) int { return max(1, concurrency/2) }

// room returns how much of the room for suspects a suspect takes, and whether it runs alone.
func (d *delivery) room() (n int, alone bool) {
	o := &d.c.o
	all, died := roomForSuspects(o.Concurrency), d.starts
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
	var err error
	switch {
	case d.carries:
		var text string
		if text, err = e.EncodeCounts(); err == nil {
			err = d.receipt.Rewrite(ctx, d.c.o.Visibility, text)
		}
	case d.claim == nil:
		return nil
	default:
		err = d.claim.count(ctx, e.Counts)
	}
	if err == nil {
		d.e, d.counted = e, true
	}
	return excuse(ctx, err)
}

// enter waits for what the handler needs to run: a seat, for a suspect also its room among the suspects, and all seats if it runs
// alone. For that no message is received meanwhile, and others that wait for a seat become stale. leave gives it back; after an error
// there is nothing to give back.
func (d *delivery) enter(ctx context.Context) (leave func(), err error) {
	c := d.c
	if !d.suspect {
		if err := d.take(ctx, c.budget.seats, 1, errCrowded); err != nil {
			if errors.Is(err, errCrowded) {
				c.slow()
			}
			return nil, err
		}
		return func() { c.budget.seats.Release(1) }, nil
	}
	n, alone := d.room()
	if err := d.take(ctx, c.budget.suspects, n, errGrouped); err != nil {
		return nil, err
	}
	seats, stale := 1, errGrouped
	if alone {
		seats, stale = c.o.Concurrency, nil
		c.budget.alone.Add(1)
	}
	err = d.take(ctx, c.budget.seats, seats, stale)
	leave = func() {
		if err == nil {
			c.budget.seats.Release(int64(seats))
		}
		c.budget.suspects.Release(int64(n))
		if alone {
			c.budget.alone.Add(-1)
		}
		c.budget.give(c, 0)
	}
	if err != nil {
		leave()
		return nil, err
	}
	if alone {
		c.budget.settled(ctx)
	}
	return leave, nil
}

// take takes n of the places. If the delivery becomes stale while it waits, the error is stale, unless that is nil.
func (d *delivery) take(ctx context.Context, places *semaphore.Weighted, n int, stale error) error {
	if places.TryAcquire(int64(n)) {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.c.stopping, cancel)()
	if stale != nil {
		ctx, cancel = context.WithDeadlineCause(ctx, d.stale, stale)
		defer cancel()
	}
	switch {
	case places.Acquire(ctx, int64(n)) == nil:
		return nil
	case stale != nil && errors.Is(context.Cause(ctx), stale):
		return stale
	}
	return errUnhandled
}

// settled waits until the messages that were handled before are settled, for up to 5 s. If a suspect message crashed the
// process earlier, they would be redelivered with it, and become suspect too.
func (b *Budget) settled(ctx context.Context) {
	for began := time.Now(); b.busy() && time.Since(began) < 5*time.Second; {
		if retry.Sleep(ctx, linger) != nil {
			return
		}
	}
}
