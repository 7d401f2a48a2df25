package main

import (
	"cmp"
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

// soak is one run.
type soak struct {
	options
	dir     string // of the journals
	service *service
	site    *site // straight to the service
	crews   []*crew
	began   time.Time
	ended   time.Time // of the last process

	mu       sync.Mutex // guards what follows
	killed   time.Time  // the last process that was ended by force
	troubles []trouble
	retired  []error // how each process ended that was asked to
}

// run runs a soak and writes its report to out. The error says why it could not be run; a violation is none, but in the
// report.
func run(ctx context.Context, o options, out io.Writer) (r report, err error) {
	dir, err := os.MkdirTemp("", "azconc-soak-")
	if err != nil {
		return r, err
	}
	defer func() {
		if err == nil && r.Problems == 0 {
			err = os.RemoveAll(dir)
			return
		}
		_ = os.RemoveAll(filepath.Join(dir, "data"))
		_, _ = fmt.Fprintf(out, "the journals of the workers are in %s\n", dir)
	}()
	s := &soak{options: o, dir: dir}
	if s.service, err = startService(ctx, filepath.Join(dir, "data")); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.service.server.Stop()) }()
	s.site = newSite(s.service.server.Account())
	defer s.site.close()
	if err := s.site.prepare(ctx); err != nil {
		return r, fmt.Errorf("prepare: %w", err)
	}
	defer s.end()
	j, err := s.play(ctx)
	if err != nil {
		return r, err
	}
	r = s.report(j)
	r.write(out)
	return r, nil
}

// play lets the workers work, and judges what they did.
func (s *soak) play(ctx context.Context) (*judgement, error) {
	for i := range workers {
		s.crews = append(s.crews, &crew{index: i, soak: s, line: newLine(s.site.account, fmt.Sprint("w", i), s.Seed)})
	}
	s.began = time.Now()
	for _, c := range s.crews {
		if err := c.start(); err != nil {
			return nil, err
		}
	}
	if err := s.storm(ctx); err != nil {
		return nil, err
	}
	drained := s.settle(ctx)
	var all sync.WaitGroup
	for _, c := range s.crews {
		all.Go(func() { s.retire(c.process) })
	}
	all.Wait()
	s.ended = time.Now()

	j := &judgement{troubles: s.troubles}
	orderly := j.say("workers end in order, with no goroutine left")
	for _, err := range s.retired {
		orderly.judged++
		orderly.check(err)
	}
	empty := j.say("queues empty at the end")
	empty.judged = 2 * len(queues)
	empty.check(drained)
	var err error
	if j.records, err = readJournals(s.dir); err != nil {
		return nil, err
	}
	for _, c := range chores {
		if err := c.judge(ctx, s.site, j); err != nil {
			return nil, err
		}
	}
	return j, s.leftovers(ctx, j)
}

// settle ends the weather, and waits until all messages are handled.
func (s *soak) settle(ctx context.Context) error {
	for _, c := range s.crews {
		c.line.calm()
		_, _ = io.WriteString(c.process.stdin, "calm\n")
	}
	for until := time.Now().Add(s.Drain); ; {
		left, err := s.waiting(ctx)
		if err == nil && left == "" {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("after %v: %s%w", s.Drain, left, cmp.Or(err, errLeft))
		}
		if err := retry.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

var errLeft = errors.New("they are not empty")

// waiting says which queues are not empty; hidden messages count.
func (s *soak) waiting(ctx context.Context) (left string, err error) {
	for _, q := range queues {
		for _, name := range []string{q, q + poisonSuffix} {
			p, err := s.site.queue(name).GetProperties(ctx, nil)
			if err != nil {
				return left, err
			}
			if n := *p.ApproximateMessagesCount; n > 0 {
				left += fmt.Sprintf("%s has %d messages; ", name, n)
			}
		}
	}
	return left, nil
}

// retire ends a process in order. One that does not end so has broken a promise, which is no reason to end the soak.
func (s *soak) retire(m *member) {
	err := m.retire(s.Patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = append(s.retired, err)
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
