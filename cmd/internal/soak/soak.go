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

// options are those of the command.
type options struct {
	Seed    uint64
	Minutes float64
	Workers int
	Plant   plant
	Rough   float64       // how many times as many faults as usual
	Drain   time.Duration // how long the queues may take to be empty once the weather is over
	// Patience is how long a worker may take to end in order: handlers finish, and leases are released, over a faulty network.
	Patience time.Duration
	Dir      string        // for the journals; removed unless it is given
	Vitals   time.Duration // how often workers record their memory and goroutines. Defaults to vitalsEvery
}

// soak is one run.
type soak struct {
	options
	out     io.Writer
	dir     string // of the journals
	service *service
	site    *site // straight to the service
	crews   []*crew
	events  []event
	began   time.Time
	ended   time.Time // of the last process
	killed  time.Time // the last process that was ended by force

	mu       sync.Mutex // guards what follows
	troubles []trouble
	retired  []error // how each process ended that was asked to
}

func (s *soak) length() time.Duration { return time.Duration(s.Minutes * float64(time.Minute)) }

// run runs a soak and writes its report to out. The error says why it could not be run; a violation is none, but in the
// report.
func run(ctx context.Context, o options, out io.Writer) (r report, err error) {
	dir := o.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "azconc-soak-"); err != nil {
			return r, err
		}
	}
	s := &soak{options: o, out: out, dir: dir, events: forecast(o.Seed, time.Duration(o.Minutes*float64(time.Minute)), o.Workers)}
	defer func() {
		if o.Dir != "" {
			return
		}
		if err == nil && r.Problems == 0 {
			err = os.RemoveAll(dir)
			return
		}
		_ = os.RemoveAll(filepath.Join(dir, "data"))
		_, _ = fmt.Fprintf(out, "the journals of the workers are in %s\n", dir)
	}()
	if s.service, err = startService(ctx, filepath.Join(dir, "data")); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.service.stop()) }()
	s.site = newSite(s.service.server.Account())
	defer s.site.close()
	return s.play(ctx)
}

func (s *soak) play(ctx context.Context) (r report, err error) {
	if err := s.site.prepare(ctx); err != nil {
		return r, fmt.Errorf("prepare: %w", err)
	}
	defer s.end()
	for i := range s.Workers {
		c := &crew{index: i, soak: s}
		if c.line, err = newLine(s.site.account, fmt.Sprint("w", i), s.Seed, s.Rough); err != nil {
			return r, err
		}
		s.crews = append(s.crews, c)
	}
	s.began = time.Now()
	for _, c := range s.crews {
		if err := c.start(); err != nil {
			return r, err
		}
	}
	j := &judgement{}
	if err := s.watched(ctx); err != nil && !errors.Is(err, errGone) {
		return r, err
	}
	drained := s.settle(ctx)
	s.retireAll()
	orderly := j.say("workers end in order, with no goroutine left")
	for _, err := range s.retired {
		orderly.judged++
		orderly.check(err)
	}
	empty := j.say("queues empty at the end")
	empty.judged = 2 * len(queues)
	empty.check(drained)
	j.records, err = readJournals(s.dir)
	if err != nil {
		return r, err
	}
	j.troubles = s.troubles
	flat := j.say("memory and goroutines flat")
	vitals := vitalsOf(j.records)
	for _, v := range vitals {
		flat.judged++
		flat.check(v.flat())
	}
	for _, c := range chores() {
		if err := c.judge(ctx, s.site, j); err != nil {
			return r, err
		}
	}
	if err := s.leftovers(ctx, j); err != nil {
		return r, err
	}
	r = s.report(j, vitals)
	r.write(s.out)
	return r, nil
}

// watched is storm, while this process is watched too: it is the network.
func (s *soak) watched(ctx context.Context) error {
	own, err := createJournal(s.dir, "network")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() {
		watch(ctx, func() bool {
			for _, c := range s.crews {
				c.line.met() // empties the logs
			}
			return ctx.Err() != nil
		}, cmp.Or(s.Vitals, vitalsEvery), own)
	})
	return s.storm(ctx)
}

// settle ends the weather, and waits until all messages are handled.
func (s *soak) settle(ctx context.Context) error {
	for _, c := range s.crews {
		c.line.calm()
		c.current().calm()
	}
	until := time.Now().Add(s.Drain)
	for {
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

// retireAll ends all workers in order.
func (s *soak) retireAll() {
	var all sync.WaitGroup
	for _, c := range s.crews {
		all.Go(func() { s.retire(c.current()) })
	}
	all.Wait()
	s.ended = time.Now()
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
		if m := c.current(); m != nil {
			m.kill()
		}
		c.line.close()
	}
}
