package idempotent

import (
	"context"
	"slices"
	"time"

	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/pkg/retry"
)

// Messages that wait for a handler are unavailable to other consumers, but a receive of one message costs as much as
// one of 32. So a consumer holds as many messages as it has handlers, plus only those that its handlers will start
// within a second, judging by the latest ones. Messages that wait longer anyway are given back.

const (
	linger     = 10 * time.Millisecond // how long to wait for other handlers that may be about to return
	maxWait    = time.Second           // how long a message may wait for a handler
	maxAhead   = 2 * queues.MaxReceive
	maxClosing = 2 * queues.MaxReceive // in addition to one per handler
	maxCopies  = 4 * queues.MaxReceive // copies that wait for another delivery in this process
)

// durations are the latest durations of something.
type durations struct {
	last [16]time.Duration
	n    int // how many there have been
}

func (p *durations) add(d time.Duration) {
	p.last[p.n%len(p.last)] = d
	p.n++
}

// ahead returns how many messages busy handlers will start within the time that a message may wait.
func (p *durations) ahead(handlers int) int {
	const few = 3
	slowest := slices.Max(p.last[:])
	switch {
	case p.n < few:
		return 0
	case slowest <= time.Duration(handlers)*maxWait/maxAhead:
		return maxAhead
	}
	return int(time.Duration(handlers) * maxWait / slowest)
}

// slow records that messages have waited too long for a handler, so that no more are received than there are handlers.
func (c *Consumer) slow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace.add(time.Duration(c.o.Concurrency+1) * maxWait)
}

// wanted returns how many messages to request now, and whether MaxMessages have been handled. Consumer.mu is held.
func (c *Consumer) wanted() (n int, over bool) {
	ahead := 0
	if c.o.Budget == nil {
		ahead = c.pace.ahead(c.o.Concurrency)
	}
	target := c.o.Concurrency + ahead
	room := target - c.stock[waiting] - c.stock[running]
	if left := c.o.MaxMessages - c.finished; c.o.MaxMessages > 0 {
		if left <= 0 {
			return 0, true
		}
		room = min(room, left-len(c.inFlight)) // messages in flight may suffice, or turn out to be copies
	}
	switch {
	case room <= 0, c.outage.lasts(), c.budget.alone.Load() > 0, c.stock[closing] >= c.o.Concurrency+maxClosing:
		return 0, false
	case room >= min(queues.MaxReceive, target), c.stock[waiting] == 0, c.o.MaxMessages > 0:
		return min(room, queues.MaxReceive), false
	}
	return 0, false
}

// reserve waits until there is room for messages, and returns for how many. 0 means to stop.
func (c *Consumer) reserve(ctx context.Context) int {
	for lingered := false; ; {
		c.mu.Lock()
		n, over := c.wanted()
		busy := c.stock[running] > 0
		c.mu.Unlock()
		if over || ctx.Err() != nil {
			return 0
		}
		got := c.budget.take(c, n)
		switch all := got == n && !busy; {
		case got > 0 && (all || lingered || got >= min(queues.MaxReceive, c.o.Concurrency)):
			return got
		case got > 0: // others that started together may be about to finish
			lingered = true
			c.budget.give(c, got)
			_ = retry.Sleep(ctx, linger)
			continue
		}
		select {
		case <-c.room:
		case <-ctx.Done():
		}
	}
}

// move moves a delivery to another stage, and makes the receiver check whether there is room.
func (c *Consumer) move(d *delivery, to stage) {
	c.mu.Lock()
	from := d.stage
	c.stock[from]--
	c.stock[to]++
	d.stage = to
	switch {
	case to == running:
		d.began = time.Now()
	case from == running:
		c.pace.add(time.Since(d.began))
	}
	c.mu.Unlock()
	c.budget.give(c, from.handlers()-to.handlers())
}

// done removes a settled delivery.
func (c *Consumer) done(d *delivery) {
	c.mu.Lock()
	delete(c.inFlight, d.m.ID)
	if c.keys[d.m.Key] == d {
		delete(c.keys, d.m.Key)
	}
	c.stock[d.stage]--
	if d.handled.Load() {
		c.finished++
	}
	var next *delivery
	if r := d.again; r != nil {
		if _, unused := d.receipt.Renewed(); unused {
			next = c.admit(r.m, r.began)
		}
	}
	last := len(c.inFlight) == 0
	c.mu.Unlock()
	d.endSpan(d.err)
	close(d.settled)
	free := d.stage.handlers()
	if next != nil {
		free -= next.stage.handlers()
		c.tasks.Go(func() { c.begin([]*delivery{next}) })
	}
	c.budget.give(c, free)
	if last && c.o.ExitWhenEmpty { // otherwise another poll would find no more than the last one did
		c.Wake()
	}
}

// poke makes the receiver check again.
func (c *Consumer) poke() {
	select {
	case c.room <- struct{}{}:
	default:
	}
}
