package soak

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// TestAWorkerThatDoesNotEndIsAViolation is about one that is replaced on the way: it used to end the soak, with the exit status
// of one that could not be run.
func TestAWorkerThatDoesNotEndIsAViolation(t *testing.T) {
	stubborn := &member{name: "w1.1", cmd: exec.Command("sleep", "60"), done: make(chan struct{})}
	var err error
	if stubborn.stdin, err = stubborn.cmd.StdinPipe(); err == nil {
		err = stubborn.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(stubborn.done)
		stubborn.err = stubborn.cmd.Wait()
	}()
	s := &soak{options: options{Patience: 50 * time.Millisecond}, dir: t.TempDir(), orderly: &verdict{}}
	c := &crew{index: 1, soak: s, line: &line{}, generation: 1, process: stubborn}
	s.crews = []*crew{nil, c}
	if err := s.happen(t.Context(), event{what: replace, worker: 1}); err != nil {
		t.Errorf("the soak ends: %v", err)
	}
	next := c.process
	next.kill()
	if next == stubborn || !slices.Equal(s.orderly.problems, []string{"w1.1 did not end within 50ms"}) || s.killed.IsZero() {
		t.Errorf("%q, killed at %v", s.orderly.problems, s.killed)
	}
}
