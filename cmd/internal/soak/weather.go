package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/pkg/retry"
)

// event is one thing that happens to a worker or to the service.
type event struct {
	at     time.Duration
	what   string
	worker int // -1: the service
	lasts  time.Duration
}

// The events.
const (
	kill    = "kill"    // SIGKILL, and a new process
	pause   = "stop"    // SIGSTOP, and SIGCONT later
	replace = "replace" // asked to end, and a new process
	sever   = "sever"   // its network is cut
	restart = "restart" // of the service
)

func (e event) String() string {
	who := fmt.Sprintf("w%d", e.worker)
	if e.worker < 0 {
		who = "service"
	}
	return fmt.Sprintf("%6.1fs %-7s %s %.1fs", e.at.Seconds(), e.what, who, e.lasts.Seconds())
}

// forecast returns the events of a soak. It follows from the arguments alone. Worker 0 is never ended: its memory and its
// goroutines are followed from the beginning to the end.
func forecast(seed uint64, length time.Duration, workers int) (all []event) {
	rng := rand.New(rand.NewPCG(seed, 0x736f616b))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	busy := make([]time.Duration, workers)
	var deck []event
	for at := between(time.Second, 3*time.Second); at < length-time.Second; at += between(2*time.Second, 6*time.Second) {
		if len(deck) == 0 { // each kind has its share, also of a short soak
			deck = hand(between)
			rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		e := deck[0]
		e.at, e.worker = at, -1
		if e.what != restart {
			first := 0
			if e.what == kill || e.what == replace {
				first = 1
			}
			var free []int
			for w := first; w < workers; w++ {
				if busy[w] <= at {
					free = append(free, w)
				}
			}
			if len(free) == 0 {
				continue
			}
			e.worker = free[rng.IntN(len(free))]
			busy[e.worker] = at + e.lasts + 2*time.Second
		}
		deck = deck[1:]
		e.lasts = min(e.lasts, length-at)
		all = append(all, e)
	}
	return all
}

// hand returns the events of about a minute.
func hand(between func(least, most time.Duration) time.Duration) []event {
	deck := []event{{what: kill}, {what: kill}, {what: kill}, {what: kill}, {what: replace}, {what: restart}}
	for range 3 {
		deck = append(deck, event{what: pause, lasts: between(leaseTime+time.Second, leaseTime+6*time.Second)}) // past its leases
	}
	for range 2 {
		deck = append(deck, event{what: pause, lasts: between(500*time.Millisecond, 8*time.Second)}, event{what: sever, lasts: between(time.Second, 20*time.Second)})
	}
	return deck
}

// storm lets the events happen, and returns when all are over.
func (s *soak) storm(ctx context.Context) error {
	began := time.Now()
	all, within := errgroup.WithContext(ctx)
	for _, e := range s.events {
		if retry.Sleep(within, time.Until(began.Add(e.at))) != nil {
			break
		}
		all.Go(func() error {
			if err := s.happen(within, e); err != nil {
				return fmt.Errorf("%v: %w", e, err)
			}
			return nil
		})
	}
	_ = retry.Sleep(within, time.Until(began.Add(s.length())))
	return cmp.Or(all.Wait(), ctx.Err())
}

// happen lets one event happen, and notes the trouble that it makes.
func (s *soak) happen(ctx context.Context, e event) error {
	t := trouble{what: e.what, to: forever}
	if e.worker < 0 {
		s.service.turn.Lock()
		defer s.service.turn.Unlock()
		t.from = now()
		at := s.note(t)
		defer s.over(at)
		return s.service.restart(ctx)
	}
	c := s.crews[e.worker]
	c.turn.Lock()
	defer c.turn.Unlock()
	m := c.current()
	t.process, t.from = m.name, now()
	switch e.what {
	case kill:
		s.note(t)
		m.kill()
		s.mu.Lock()
		s.killed = time.Now()
		s.mu.Unlock()
		return c.start()
	case replace:
		s.retire(m)
		return c.start()
	case sever:
		at := s.note(t)
		defer s.over(at)
		c.line.sever()
		defer c.line.restore()
		return retry.Sleep(ctx, e.lasts)
	default:
		at := s.note(t)
		defer s.over(at)
		if err := stop(m.cmd.Process); err != nil {
			return fmt.Errorf("%w: %w", errGone, err)
		}
		slept := retry.Sleep(ctx, e.lasts)
		if err := goOn(m.cmd.Process); err != nil {
			return fmt.Errorf("%w: %w", errGone, err)
		}
		return slept
	}
}

const forever = 1 << 62

func (s *soak) note(t trouble) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = append(s.troubles, t)
	return len(s.troubles) - 1
}

func (s *soak) over(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles[i].to = now()
}
