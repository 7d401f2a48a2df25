package idempotent

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/observe"
)

// calm lets the processes finish what there is, poison included.
func (s *storm) calm() {
	s.empty()
	s.poisoned()
	if _, err := redrive.Run(context.Background(), s.poison, s.queue, nil); err != nil {
		s.t.Error(err)
	}
	s.empty()
	s.mu.Lock()
	var all []*crew
	for c := range s.alive {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.stop()
		<-c.ended
	}
	pass(time.Minute)
}

// empty waits until no message is in the queue.
func (s *storm) empty() {
	for began := time.Now(); len(s.left(s.queue)) > 0; {
		if pass(5 * time.Second); time.Since(began) > 2*time.Hour {
			s.t.Fatalf("%d messages are left", len(s.left(s.queue)))
		}
	}
}

// poisoned judges what went to the poison queue: nothing unhandled.
func (s *storm) poisoned() {
	s.rig.mu.Lock()
	defer s.rig.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.events {
		if e.Kind != observe.Poisoned {
			continue
		}
		n++
		least := 1
		if strings.Contains(e.Err.Error(), "failed 5 times") {
			least = 5
		}
		if s.starts[e.Message.ID] < least {
			s.t.Errorf("message %s is poison after %d starts: %v", e.Message.Key, s.starts[e.Message.ID], e.Err)
		}
	}
	if n == 0 && len(s.copies) >= 500 {
		s.t.Error("no poison in this storm")
	}
}

// judge holds what has happened against what the mode promises, and returns how many messages were lost, and how many were
// handled too often.
func (s *storm) judge(say func(string, ...any)) (lost, wrong int) {
	repeated, sent := 0, 0
	for key, copies := range s.copies {
		sent += copies
		all := s.effects[key]
		n := len(all)
		if s.mode.inbox {
			n = s.applied(key)
		}
		if n == 0 {
			lost++
			say("%s is lost", key)
		}
		if n > 1 {
			repeated++
		}
		switch {
		case n <= 1, !s.mode.inbox && !s.mode.knowsCopies() && n <= copies:
		case s.mode.inbox:
			wrong++
			say("%s was applied %d times", key, n)
		default:
			free := 1
			if !s.mode.knowsCopies() {
				free = copies + s.said(key)
			}
			for _, one := range all[:n-1] { // each but the last must be one that nobody could know of
				if one.interrupted() {
					free++
				}
			}
			if n > free {
				wrong++
				say("%s was handled %d times, and %d are explained", key, n, free)
			}
		}
	}
	s.t.Logf("%d messages, sent %d times: %d lost, %d repeated, %d of them without a reason", len(s.copies), sent, lost, repeated, wrong)
	return lost, wrong
}

// said is how often a consumer has said that a message may be handled again. A poison message is one: when the response to its
// sending is lost, it is sent again, and without Markers each copy is handled when it is redriven.
func (s *storm) said(key string) (n int) {
	s.rig.mu.Lock()
	defer s.rig.mu.Unlock()
	for _, e := range s.events {
		if (e.Kind == observe.Failed || e.Kind == observe.Lost || e.Kind == observe.Poisoned) && e.Message != nil && e.Message.Key == key {
			n++
		}
	}
	return n
}

// interrupted tells whether something happened to the process soon after the effect.
func (d done1) interrupted() bool {
	return slices.ContainsFunc(d.by.troubles, func(one trouble) bool {
		return one.from.Before(d.at.Add(3*time.Second)) && one.to.After(d.at)
	})
}

// leftovers looks for what has outlived its messages.
func (s *storm) leftovers() {
	ctx := context.Background()
	pass(2 * time.Hour)
	pass(queues.Week + sendingLife)
	if _, err := s.claims.GC(ctx, time.Hour); err != nil {
		s.t.Error(err)
	}
	if n := len(s.blobs()); n > 0 {
		s.t.Errorf("%d bodies are left", n)
	}
	pass(100 * 24 * time.Hour)
	if _, err := s.markers.GC(ctx, "orders"); err != nil {
		s.t.Error(err)
	}
	if n := s.remembered("markers"); n > 0 {
		s.t.Errorf("%d markers are left", n)
	}
}
