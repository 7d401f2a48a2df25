package idempotent

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Budget is how many handlers run at a time in several Consumers of one process, such as those of its queues. Set it as
// ConsumerOptions.Budget of each. It is safe for concurrent use.
//
// A Consumer asks for no more messages than there are free handlers, so that no message waits for those of another queue while its
// visibility timeout passes. Each Consumer keeps one handler, from NewConsumer until its Run has ended, however long those of the others
// take, and uses those that the others do not need. Half of the handlers run suspects, of whatever queue. A suspect that runs alone is
// the only one that runs in all of them.
type Budget struct {
	handlers int
	seats    *semaphore.Weighted // of the handlers that run
	suspects *semaphore.Weighted // the room for suspects whose handlers run; see room
	alone    atomic.Int32        // suspects that run alone, or wait for that

	mu   sync.Mutex
	held map[*Consumer]int // by Consumer, how many handlers are for its messages, and for those that it asks for
}

// NewBudget returns a Budget of so many handlers: at least as many as there are Consumers.
func NewBudget(handlers int) *Budget {
	return &Budget{
		handlers: handlers, seats: semaphore.NewWeighted(int64(handlers)), suspects: semaphore.NewWeighted(int64(roomForSuspects(handlers))),
		held: map[*Consumer]int{},
	}
}

// join adds a Consumer, until leave.
func (b *Budget) join(c *Consumer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.held) >= b.handlers {
		return fmt.Errorf("ConsumerOptions.Budget: its %d handlers are not enough for another Consumer", b.handlers)
	}
	b.held[c] = 0
	return nil
}

func (b *Budget) leave(c *Consumer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, c)
	b.poke()
}

// take reserves handlers for up to n messages that a Consumer is about to ask for, and returns how many. One is kept for each of the
// others.
func (b *Budget) take(c *Consumer, n int) int {
	if c.o.Budget == nil { // it may hold messages that its handlers will start soon
		return n
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.handlers - b.held[c]
	for other, held := range b.held {
		if other != c {
			free -= max(held, 1)
		}
	}
	n = max(0, min(n, free))
	b.held[c] += n
	return n
}

// give returns n handlers that a Consumer does not need any more.
func (b *Budget) give(c *Consumer, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held[c] -= n
	b.poke()
}

// busy reports whether handlers run, or messages are being settled.
func (b *Budget) busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.held {
		c.mu.Lock()
		n := c.stock[running] + c.stock[closing]
		c.mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

// poke makes the receivers check whether there is room. mu is held.
func (b *Budget) poke() {
	for c := range b.held {
		c.poke()
	}
}
