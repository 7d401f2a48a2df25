package idempotent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// sharing are queues whose consumers share a budget.
type sharing struct {
	*rig
	budget *Budget
	start  chan struct{} // closed when all consumers are made, and have joined the budget
	stop   context.CancelFunc
	all    sync.WaitGroup

	lock          sync.Mutex
	running, most int
	received      map[string]time.Time
	waited        time.Duration             // the longest from the receive of a message to its handler
	handled       map[string]map[string]int // by queue
}

func (r *rig) share(budget *Budget) (*sharing, context.Context) {
	s := &sharing{rig: r, budget: budget, start: make(chan struct{}), received: map[string]time.Time{}, handled: map[string]map[string]int{}}
	ctx, stop := context.WithCancel(r.t.Context())
	s.stop = stop
	return s, ctx
}

// fill sends n messages to a queue.
func (s *sharing) fill(queue string, n int) {
	s.t.Helper()
	s.service.Queue(queue)
	p, err := NewProducer(s.client(queue, s.service), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range n {
		if _, err := p.Send(s.t.Context(), Outgoing{ID: fmt.Sprint(queue, i)}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// consumes runs a consumer of a queue whose handlers take so long, from start on.
func (s *sharing) consumes(ctx context.Context, queue string, takes time.Duration) {
	s.t.Helper()
	s.handled[queue] = map[string]int{}
	c, err := NewConsumer(s.client(queue, s.service), func(_ context.Context, m *Message) error {
		s.lock.Lock()
		s.running++
		s.most = max(s.most, s.running)
		s.lock.Unlock()
		pass(takes)
		s.lock.Lock()
		defer s.lock.Unlock()
		s.running--
		s.handled[queue][m.Key]++
		return nil
	}, &ConsumerOptions{Markers: s.markers, Budget: s.budget, SoftStop: time.Hour, Hooks: observe.Hooks{Event: func(_ context.Context, e observe.Event) {
		s.lock.Lock()
		defer s.lock.Unlock()
		switch e.Kind {
		case observe.Received:
			s.received[e.Message.ID] = time.Now()
		case observe.Started:
			s.waited = max(s.waited, time.Since(s.received[e.Message.ID]))
		}
	}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.all.Go(func() {
		<-s.start
		if err := c.Run(ctx); err != nil {
			s.t.Errorf("%s: %v", queue, err)
		}
	})
}

func (s *sharing) done(queue string) int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.handled[queue])
}

// end stops the consumers, and checks what they have done.
func (s *sharing) end() {
	s.t.Helper()
	s.stop()
	s.all.Wait()
	if s.most > s.budget.handlers || len(s.budget.held) != 0 {
		s.t.Errorf("%d handlers ran of %d, and %v are held", s.most, s.budget.handlers, s.budget.held)
	}
	for queue, ids := range s.handled {
		for id, n := range ids {
			if n != 1 {
				s.t.Errorf("%s of %s was handled %d times", id, queue, n)
			}
		}
	}
}

// TestQueuesShareABudgetAndNoneStarves: the handlers of one queue take ten minutes and use what another does not need, and the messages of
// that one are handled at once. No message is received before there is a handler for it.
func TestQueuesShareABudgetAndNoneStarves(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		s, ctx := r.share(NewBudget(4))
		s.fill("slow", 12)
		s.fill("quick", 0)
		s.consumes(ctx, "slow", 10*time.Minute)
		s.consumes(ctx, "quick", time.Second)
		close(s.start)
		pass(time.Minute)
		s.lock.Lock()
		if s.running != 3 {
			t.Errorf("%d handlers run, want those that the other queue does not keep", s.running)
		}
		s.lock.Unlock()
		s.fill("quick", 20)
		pass(30 * time.Second)
		if n := s.done("quick"); n != 20 || s.done("slow") != 0 {
			t.Errorf("%d of 20 are handled beside those that take long", n)
		}
		pass(time.Hour)
		if n := s.done("slow"); n != 12 {
			t.Errorf("%d of 12 are handled", n)
		}
		s.end()
		if s.waited > time.Second/2 {
			t.Errorf("a message waited %v for its handler", s.waited)
		}
	})
}

// TestABudgetCostsNoRequests per message, whether one queue or two are busy.
func TestABudgetCostsNoRequests(t *testing.T) {
	n := 640
	if testing.Short() {
		n = 320
	}
	for _, queues := range []int{1, 2} {
		inBubble(t, func(t *testing.T, r *rig) {
			s, ctx := r.share(NewBudget(64))
			for q := range queues {
				s.fill(fmt.Sprint("queue", q), n)
			}
			s.service.Reset()
			for q := range queues {
				s.consumes(ctx, fmt.Sprint("queue", q), time.Millisecond)
			}
			close(s.start)
			for q := range queues {
				for s.done(fmt.Sprint("queue", q)) < n {
					pass(10 * time.Millisecond)
				}
			}
			s.end()
			if per := float64(s.service.Requests()) / float64(n*queues); per > 1.10 {
				t.Errorf("%d queues: %.3f requests per message", queues, per)
			} else {
				t.Logf("%d queues: %.3f requests per message", queues, per)
			}
		})
	}
}

// TestAnOutageOfOneQueueKeepsNoHandlersFromAnother, nor a response that is lost: the handlers that were meant for its messages are free again.
func TestAnOutageOfOneQueueKeepsNoHandlersFromAnother(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.Refuse, aztest.Throttle, aztest.LoseAnswer, aztest.LoseRequest, aztest.FailAfterCommit} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				s, ctx := r.share(NewBudget(4))
				s.fill("broken", 8)
				s.fill("whole", 40)
				s.service.SetFaults(aztest.Fault{Kind: kind, Match: func(q *aztest.Request) bool {
					return strings.HasPrefix(q.Resource, "broken")
				}})
				s.consumes(ctx, "broken", time.Second)
				s.consumes(ctx, "whole", time.Second)
				close(s.start)
				pass(2 * time.Minute)
				if n := s.done("whole"); n != 40 {
					t.Errorf("%d of 40 are handled during the outage of the other queue", n)
				}
				s.service.SetFaults()
				pass(5 * time.Minute)
				if n := s.done("broken"); n != 8 {
					t.Errorf("%d of 8 are handled after the outage", n)
				}
				s.end()
			})
		})
	}
}

func TestABudgetHasAHandlerForEachConsumer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		s, ctx := r.share(NewBudget(1))
		s.fill("one", 1)
		s.consumes(ctx, "one", time.Minute)
		close(s.start)
		pass(time.Second)
		handle := func(context.Context, *Message) error { return nil }
		for _, o := range []ConsumerOptions{{Dedupe: DedupeNone, Budget: s.budget}, {Dedupe: DedupeNone, Budget: NewBudget(0)}, {Dedupe: DedupeNone, Budget: NewBudget(2), Concurrency: 3}} {
			if _, err := NewConsumer(r.queue, handle, &o); err == nil {
				t.Errorf("%+v is taken", o)
			}
		}
		s.end()
	})
}
