package soak

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

// forecast returns the events of a soak. It follows from the arguments alone. Worker 0 is never ended: one
// process lives through all of it.
func forecast(seed uint64, length time.Duration) (all []event) {
	rng := rand.New(rand.NewPCG(seed, 0x736f616b))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	var busy [workers]time.Duration
	var deck []event
	for at := between(time.Second, 3*time.Second); at < length-time.Second; at += between(2*time.Second, 6*time.Second) {
		if len(deck) == 0 { // each kind has its share, also of a short soak
			deck = hand(between)
			rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		e := deck[0]
		e.at, e.worker, e.lasts = at, -1, min(e.lasts, length-at)
		if e.what != restart {
			e.worker = rng.IntN(workers)
			if at < busy[e.worker] || e.worker == 0 && (e.what == kill || e.what == replace) {
				continue // the event is put off
			}
			busy[e.worker] = at + e.lasts + 2*time.Second
		}
		deck = deck[1:]
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
		deck = append(deck, event{what: pause, lasts: between(500*time.Millisecond, 8*time.Second)},
			event{what: sever, lasts: between(time.Second, 20*time.Second)})
	}
	return deck
}

// storm lets the events happen, and returns when all are over.
func (s *soak) storm(ctx context.Context) error {
	began := time.Now()
	all, within := errgroup.WithContext(ctx)
	for _, e := range forecast(s.Seed, s.Length) {
		if retry.Sleep(within, time.Until(began.Add(e.at))) != nil {
			break
		}
		for _, c := range s.crews {
			c.line.met() // empties the logs
		}
		all.Go(func() error {
			if err := s.happen(within, e); err != nil {
				return fmt.Errorf("%+v: %w", e, err)
			}
			return nil
		})
	}
	_ = retry.Sleep(within, time.Until(began.Add(s.Length)))
	return cmp.Or(all.Wait(), ctx.Err())
}

// happen lets one event happen, and notes the trouble that it makes.
func (s *soak) happen(ctx context.Context, e event) error {
	if e.worker < 0 {
		s.service.turn.Lock()
		defer s.service.turn.Unlock()
		defer s.trouble("", e.what)()
		return s.service.restart(ctx)
	}
	c := s.crews[e.worker]
	c.turn.Lock()
	defer c.turn.Unlock()
	m := c.process
	switch e.what {
	case kill:
		s.trouble(m.name, kill)
		m.kill()
		s.mu.Lock()
		s.killed = time.Now()
		s.mu.Unlock()
		return c.start()
	case replace:
		s.retire(m)
		return c.start()
	case sever:
		defer s.trouble(m.name, sever)()
		c.line.sever()
		defer c.line.restore()
	case pause: // of one that has ended by itself, retire tells
		defer s.trouble(m.name, pause)()
		_ = m.cmd.Process.Signal(stop)
		defer func() { _ = m.cmd.Process.Signal(goOn) }()
	}
	return retry.Sleep(ctx, e.lasts)
}

const forever = 1 << 62

// trouble notes that a process, or with "" the service, has trouble from now on. The function that it returns ends it.
func (s *soak) trouble(process, what string) (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.troubles)
	s.troubles = append(s.troubles, trouble{process: process, what: what, from: now(), to: forever})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.troubles[i].to = now()
	}
}
