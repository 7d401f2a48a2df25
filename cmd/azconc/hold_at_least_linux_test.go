package main

import (
	"syscall"
	"testing"
	"time"
)

// A lock that is held for a minimum time was held through TERM and --timeout: with --hold-at-least 1h, only KILL ended it.
func TestAMinimumTimeEndsOnTERMAndTimeout(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	args := []string{"lock", "run", "locks/least", "--hold-at-least", "1h"}
	if code, _, said := s.run(append(args, "--timeout", "5s", "--", "true")...); code != 0 {
		t.Errorf("with --timeout: exit %d, %s", code, said)
	}
	cmd, said := s.command(append(args, "--", "sh", "-c", "echo done >done")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	s.eventually("done", 1)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); codeOf(err) != 0 {
		t.Errorf("after TERM: %v, %s", err, said)
	}
	// The lock is free at once.
	if code, _, said := s.run("lock", "run", "locks/least", "--no-wait", "--", "true"); code != 0 {
		t.Errorf("the next: exit %d, %s", code, said)
	}
}
