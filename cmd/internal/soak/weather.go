package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

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
	shift   = "shift"   // the machine's clock is set forward, and back later
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
func forecast(seed uint64, length time.Duration, workers int, shifts bool) (all []event) {
	rng := rand.New(rand.NewPCG(seed, 0x736f616b))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	busy := make([]time.Duration, workers)
	var deck []event
	for at := between(time.Second, 3*time.Second); at < length-time.Second; at += between(2*time.Second, 6*time.Second) {
		if len(deck) == 0 { // each kind has its share, also of a short soak
			deck = hand(between, shifts)
			rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		e := deck[0]
		e.at, e.worker = at, -1
		if e.what != restart && e.what != shift {
			first := 0
			if e.what == kill || e.what == replace {
				first = 1
			}
			free := slices.DeleteFunc(makeRange(first, workers), func(w int) bool { return busy[w] > at })
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
func hand(between func(least, most time.Duration) time.Duration, shifts bool) []event {
	deck := []event{{what: kill}, {what: kill}, {what: kill}, {what: kill}, {what: replace}, {what: restart}}
	for range 3 {
		deck = append(deck, event{what: pause, lasts: between(leaseTime+time.Second, leaseTime+6*time.Second)}) // past its leases
	}
	for range 2 {
		deck = append(deck, event{what: pause, lasts: between(500*time.Millisecond, 8*time.Second)}, event{what: sever, lasts: between(time.Second, 20*time.Second)})
	}
	if shifts {
		deck = append(deck, event{what: shift, lasts: between(2*time.Second, 30*time.Second)})
	}
	return deck
}

func makeRange(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// storm lets the events happen, and returns when all are over.
func (s *soak) storm(ctx context.Context) error {
	began := time.Now()
	var all sync.WaitGroup
	defer all.Wait()
	errs := make(chan error, len(s.events)+1)
	var serviceTurn sync.Mutex
	for _, e := range s.events {
		if err := retry.Sleep(ctx, time.Until(began.Add(e.at))); err != nil {
			return err
		}
		all.Go(func() {
			if e.worker < 0 {
				serviceTurn.Lock()
				defer serviceTurn.Unlock()
			}
			if err := s.happen(ctx, e); err != nil {
				errs <- fmt.Errorf("%v: %w", e, err)
			}
		})
		select {
		case err := <-errs:
			return err
		default:
		}
	}
	if err := retry.Sleep(ctx, time.Until(began.Add(s.length()))); err != nil {
		return err
	}
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// happen lets one event happen, and notes the trouble that it makes.
func (s *soak) happen(ctx context.Context, e event) error {
	s.log("%v", e)
	t := trouble{what: e.what, from: now(), to: forever}
	if e.worker < 0 {
		at := s.note(t)
		defer s.over(at)
		if e.what == restart {
			return s.service.restart(ctx)
		}
		return s.jump(ctx, e)
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

// jump sets the machine's clock forward, and back.
func (s *soak) jump(ctx context.Context, e event) error {
	if err := shiftClock(e.lasts); err != nil {
		return err
	}
	slept := retry.Sleep(ctx, 3*time.Second)
	if err := shiftClock(-e.lasts); err != nil {
		return err
	}
	return slept
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
