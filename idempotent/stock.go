package idempotent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// Messages that wait for a handler are unavailable to other consumers, but a receive of one message costs as much as
// one of 32. So a consumer holds as many messages as it has handlers, plus only those that its handlers will start
// within a second, judging by the latest ones. Messages that wait longer anyway are given back.

const (
	patience   = time.Second // how long a message may wait for a handler
	maxAhead   = 2 * maxReceive
	maxClosing = 2 * maxReceive // in addition to one per handler
	maxCopies  = 4 * maxReceive // copies that wait for another delivery in this process
)

// pace records how long the latest handlers took.
type pace struct {
	last    [16]time.Duration
	n       int
	slowest time.Duration
}

// fewPaces are too few to judge by.
const fewPaces = 3

func (p *pace) add(d time.Duration) {
	old := p.last[p.n%len(p.last)]
	p.last[p.n%len(p.last)] = d
	p.n++
	if d >= p.slowest {
		p.slowest = d
		return
	}
	if old < p.slowest {
		return
	}
	p.slowest = 0
	for _, one := range p.last {
		p.slowest = max(p.slowest, one)
	}
}

// ahead returns how many messages busy handlers will start within the time that a message may wait.
func (p *pace) ahead(handlers int) int {
	switch {
	case p.n < fewPaces:
		return 0
	case p.slowest <= time.Duration(handlers)*patience/maxAhead:
		return maxAhead
	}
	return int(time.Duration(handlers) * patience / p.slowest)
}

// wanted returns how many messages to request now, and whether MaxMessages have been handled. Consumer.mu is held.
func (c *Consumer) wanted() (n int, over bool) {
	ahead := c.pace.ahead(c.o.Concurrency)
	target := c.o.Concurrency + ahead
	room := target - c.stock[waiting] - c.stock[running]
	if left := c.o.MaxMessages - c.finished; c.o.MaxMessages > 0 {
		if left <= 0 {
			return 0, true
		}
		room = min(room, left-len(c.inFlight)) // messages in flight may suffice, or turn out to be copies
	}
	switch {
	case room <= 0, c.suspects > 0, c.stock[closing] >= c.o.Concurrency+maxClosing:
		return 0, false
	case room >= min(maxReceive, target), c.stock[waiting] == 0, c.o.MaxMessages > 0:
		return min(room, maxReceive), false
	}
	return 0, false
}

// reserve waits until there is room for messages, and returns for how many. 0 means to stop.
func (c *Consumer) reserve(ctx context.Context) int {
	for lingered := false; ; {
		c.mu.Lock()
		n, over := c.wanted()
		some := n < min(maxReceive, c.o.Concurrency) && c.stock[running] > 0
		c.mu.Unlock()
		switch {
		case over, ctx.Err() != nil:
			return 0
		case n > 0 && some && !lingered: // others that started together may be about to finish
			lingered = true
			_ = retry.Sleep(ctx, linger)
			continue
		case n > 0:
			return n
		}
		select {
		case <-c.room:
		case <-ctx.Done():
		}
	}
}

// enter moves a delivery to another stage.
func (c *Consumer) enter(d *delivery, to stage) {
	c.mu.Lock()
	if d.stage == to {
		c.mu.Unlock()
		return
	}
	c.stock[d.stage]--
	c.stock[to]++
	d.stage = to
	n, over := c.wanted()
	idle := c.stock[waiting]+c.stock[running] == 0
	c.mu.Unlock()
	if n > 0 || over {
		c.poke()
	}
	if idle {
		c.notes.flush()
	}
}

// poke makes the receiver check again.
func (c *Consumer) poke() {
	select {
	case c.room <- struct{}{}:
	default:
	}
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
		if _, unused := d.receipt.renewed(); unused {
			next = c.admit(r.m, r.began, r.window)
		}
	}
	n, over := c.wanted()
	idle, last := c.stock[waiting]+c.stock[running] == 0, len(c.inFlight) == 0
	c.mu.Unlock()
	close(d.settled)
	if next != nil {
		c.pool.run(func() { c.begin([]*delivery{next}) })
	}
	if n > 0 || over {
		c.poke()
	}
	if idle {
		c.notes.flush()
	}
	if last && c.o.ExitWhenEmpty { // otherwise another poll would find no more than the last one did
		select {
		case c.ready <- struct{}{}:
		default:
		}
	}
}

// nothingInFlight reports whether every delivery is settled.
func (c *Consumer) nothingInFlight() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.inFlight) == 0
}

// tenures records how long the latest messages were held, from the receive to the end of the handler.
type tenures struct {
	mu   sync.Mutex
	last [256]time.Duration
	n    int
}

func (t *tenures) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[t.n%len(t.last)] = d
	t.n++
}

// fewTenures are too few to judge by.
const fewTenures = 16

// window returns how long to hide messages: 99% of the latest ones would have finished in two thirds of it, which is
// when a renewal is due.
func (t *tenures) window(least, most time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(t.n, len(t.last))
	if n < fewTenures || least == most {
		return least
	}
	sorted := slices.Clone(t.last[:n])
	slices.Sort(sorted)
	long := sorted[n-1-n/100]
	return min(max(wholeSeconds(long*3/2+time.Second), least), most)
}

// seats grant the right to run a handler, or to run one alone. They are granted in the order of the requests, so a
// request for all of them is granted when those before it have returned theirs.
type seats struct {
	all int

	mu    sync.Mutex // guards the fields below
	taken int
	queue []*seat
}

// seat is a request for n seats.
type seat struct {
	n     int
	ready chan struct{} // closed when they are granted; nil if they were granted at once
}

// ask takes n seats, or queues for them.
func (s *seats) ask(n int) *seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 && s.taken+n <= s.all {
		s.taken += n
		return &seat{n: n}
	}
	w := &seat{n: n, ready: make(chan struct{})}
	s.queue = append(s.queue, w)
	return w
}

// leave returns the seats, or withdraws the request.
func (s *seats) leave(w *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := false
	for i, other := range s.queue {
		if other == w {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			left = true
			break
		}
	}
	if !left {
		s.taken -= w.n
	}
	for len(s.queue) > 0 && s.taken+s.queue[0].n <= s.all {
		first := s.queue[0]
		s.queue = s.queue[1:]
		s.taken += first.n
		close(first.ready)
	}
}
