//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// witness is the worker of a part. It notes when the one before it still lives, and ignores TERM on part 3.
const witness = `echo $$ >> pids
[ "$AZCONC_PART" = 3 ] && trap '' TERM
before=$(cat "part-$AZCONC_PART" 2>/dev/null) && kill -0 "$before" 2>/dev/null && echo "$AZCONC_PART:$before:$$" >> overlaps
echo $$ > "part-$AZCONC_PART"
echo "$AZCONC_PART/$AZCONC_PARTS" >> begun
while :; do sleep 1; done`

// groupShown is what azconc group show -o json prints.
type groupShown struct {
	Parts   []struct{ Held bool }
	Members []struct {
		Owner string
		Parts int
	}
}

func (s shell) group(name string) (g groupShown) {
	s.t.Helper()
	_, out, _ := s.run("group", "show", name, "-o", "json")
	_ = json.Unmarshal([]byte(out), &g)
	return g
}

// evenly waits until a group has so many members, and all its parts are shared by them.
func (s shell) evenly(name string, members int) {
	s.t.Helper()
	until(s.t, fmt.Sprintf("%d members share all parts evenly", members), func() bool {
		g := s.group(name)
		held := 0
		for _, m := range g.Members {
			if m.Parts != len(g.Parts)/members && m.Parts != (len(g.Parts)+members-1)/members {
				return false
			}
			held += m.Parts
		}
		return len(g.Members) == members && held == len(g.Parts)
	})
}

// Members come, are ended by TERM and by KILL, and no part has two workers; one of them ignores TERM.
func TestGroupRun(t *testing.T) {
	t.Parallel()
	parts := 8
	if testing.Short() {
		parts = 4
	}
	s := newShell(t, emulated(t).ConnectionString())
	if code, _, said := s.run("container", "create", "jobs"); code != 0 {
		t.Fatal(said)
	}
	member := func(owner string) (end func(syscall.Signal) (int, string)) {
		t.Helper()
		cmd, said := s.command("group", "run", "jobs/ingest", "--parts", fmt.Sprint(parts), "--duration", "15s", "--drain", "2s", "--owner", owner, "--", "sh", "-c", witness)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return func(signal syscall.Signal) (int, string) {
			_ = cmd.Process.Signal(signal)
			return codeOf(cmd.Wait()), said.String()
		}
	}
	one, two := member("one"), member("two")
	s.evenly("jobs/ingest", 2)
	three := member("three")
	s.evenly("jobs/ingest", 3)
	if code, out, said := s.run("group", "show", "jobs/ingest"); code != 0 || strings.Count(out, "held") != parts || strings.Count(out, "member ") != 3 {
		t.Errorf("exit %d: %s%s", code, out, said)
	}
	if code, _, said := s.run("group", "run", "jobs/ingest", "--parts", "9", "--", "true"); code != 4 || !strings.Contains(said, fmt.Sprintf("9 parts here, and %d parts at", parts)) {
		t.Errorf("exit %d with another number of parts: %s", code, said)
	}
	if code, said := one(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d after TERM: %s", code, said)
	}
	s.evenly("jobs/ingest", 2)
	two(syscall.SIGKILL)
	s.evenly("jobs/ingest", 1)
	if code, said := three(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d after TERM: %s", code, said)
	}
	s.allGone(s.lines("pids"))
	if overlaps := s.lines("overlaps"); len(overlaps) > 0 {
		t.Errorf("two workers at a time: %v", overlaps)
	}
	for _, line := range s.lines("begun") {
		if !strings.HasSuffix(line, fmt.Sprintf("/%d", parts)) {
			t.Errorf("a worker found %s", line)
		}
	}
}

// A command that fails at once is no hot loop.
func TestACommandOfAPartThatFailsIsRunAgainAfterAPause(t *testing.T) {
	t.Parallel()
	s := newShell(t, emulated(t).ConnectionString())
	if code, _, said := s.run("container", "create", "jobs"); code != 0 {
		t.Fatal(said)
	}
	cmd, said := s.command("group", "run", "jobs/fails", "--parts", "1", "--", "sh", "-c", `date +%s%N >> tries; exit 3`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tries := s.eventually("tries", 3)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if code := codeOf(cmd.Wait()); code != 0 || strings.Count(said.String(), "the command exited with 3; it is run again after a pause") < 2 {
		t.Errorf("exit %d: %s", code, said)
	}
	at := func(i int) time.Time {
		var ns int64
		_, _ = fmt.Sscan(tries[i], &ns)
		return time.Unix(0, ns)
	}
	if first, second := at(1).Sub(at(0)), at(2).Sub(at(1)); first < time.Second || second < 2*time.Second {
		t.Errorf("it was run again after %v and %v", first, second)
	}
}
