package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// options are those of a soak.
type options struct {
	Seed   uint64
	Length time.Duration
	Plant  plant
	Drain  time.Duration // how long the queues may take to be empty once the weather is over
	// Patience is how long a worker may take to end in order: handlers finish, and leases are released, over a faulty network.
	Patience time.Duration
}

// workers is how many processes are at work at a time.
const workers = 4

// soak is one run, and what has come of it.
type soak struct {
	options
	dir     string // of the journals
	service *service
	site    *site // straight to the service
	crews   []*crew
	records records

	mu       sync.Mutex // guards what follows
	killed   time.Time  // the last process that was ended by force
	troubles []trouble
	orderly  *verdict // of the processes that were asked to end
	verdicts []*verdict
}

// run runs a soak and writes its report to out. The error says why it could not be run; a violation is none, but a verdict.
func run(ctx context.Context, o options, out io.Writer) (s *soak, err error) {
	dir, err := os.MkdirTemp("", "azconc-soak-")
	if err != nil {
		return nil, err
	}
	s = &soak{options: o, dir: dir}
	s.orderly = s.say("workers end in order, with no goroutine left")
	defer func() {
		if err == nil && s.problems() == 0 {
			err = os.RemoveAll(dir)
			return
		}
		_ = os.RemoveAll(filepath.Join(dir, "data"))
		_, _ = fmt.Fprintf(out, "the journals of the workers are in %s\n", dir)
	}()
	if s.service, err = startService(ctx, filepath.Join(dir, "data")); err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, s.service.server.Stop()) }()
	s.site = newSite(s.service.server.Account())
	defer s.site.close()
	if err := s.site.prepare(ctx); err != nil {
		return s, fmt.Errorf("prepare: %w", err)
	}
	defer s.end()
	if err := s.play(ctx); err != nil {
		return s, err
	}
	s.report(out)
	return s, nil
}

// play lets the workers work, and judges what they did.
func (s *soak) play(ctx context.Context) (err error) {
	for i := range workers {
		c := &crew{index: i, soak: s, line: newLine(s.site.account, fmt.Sprint("w", i), s.Seed)}
		s.crews = append(s.crews, c)
		if err := c.start(); err != nil {
			return err
		}
	}
	if err := s.storm(ctx); err != nil {
		return err
	}
	empty := s.say("queues empty at the end")
	empty.judged = 2 * len(queues)
	empty.check(s.settle(ctx))
	var all sync.WaitGroup
	for _, c := range s.crews {
		all.Go(func() { s.retire(c.process) })
	}
	all.Wait()
	if s.records, err = readJournals(s.dir); err != nil {
		return err
	}
	for _, c := range chores {
		if err := c.judge(ctx, s); err != nil {
			return err
		}
	}
	return s.leftovers(ctx)
}

// settle ends the weather, and waits until all messages are handled.
func (s *soak) settle(ctx context.Context) error {
	for _, c := range s.crews {
		c.line.calm()
		_, _ = io.WriteString(c.process.stdin, "calm\n")
	}
	for until := time.Now().Add(s.Drain); ; {
		err := s.drained(ctx)
		if err == nil || time.Now().After(until) {
			return err
		}
		if err := retry.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// drained returns an error that says which queues are not empty. Hidden messages count.
func (s *soak) drained(ctx context.Context) (left error) {
	for _, q := range queues {
		for _, name := range []string{q, q + poisonSuffix} {
			p, err := s.site.queue(name).GetProperties(ctx, nil)
			if err == nil && *p.ApproximateMessagesCount > 0 {
				err = fmt.Errorf("%s has %d messages", name, *p.ApproximateMessagesCount)
			}
			left = errors.Join(left, err)
		}
	}
	return left
}

// retire ends a process in order. One that does not end so has broken a promise, which is no reason to end the soak.
func (s *soak) retire(m *member) {
	err := m.retire(s.Patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orderly.judged++
	s.orderly.check(err)
	if err != nil {
		s.killed = time.Now()
	}
}

// end leaves nothing behind, also after a failure.
func (s *soak) end() {
	for _, c := range s.crews {
		if c.process != nil {
			c.process.kill()
		}
		c.line.close()
	}
}
