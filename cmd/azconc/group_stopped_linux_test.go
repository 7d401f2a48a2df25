package main

import (
	"fmt"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// member is a worker on a part of a group that goes on whatever it is asked, and notes its part, its process and the time ten times a second.
const member = `trap '' TERM INT HUP; while :; do echo "$AZCONC_PART,$MEMBER,$$,$(date +%s%N)" >> beats; sleep 0.1; done`

// worked are the first and the last sign of life of a worker.
type worked struct {
	part, member, process string
	first, last           time.Duration
}

// worked returns what all workers have done, in the order in which they began.
func (s shell) worked() (all []worked) {
	at := map[string]int{}
	for _, line := range s.lines("beats") {
		fields := strings.Split(line, ",")
		if len(fields) != 4 {
			continue
		}
		n, _ := strconv.ParseInt(fields[3], 10, 64)
		i, known := at[fields[2]]
		if !known {
			i, at[fields[2]] = len(all), len(all)
			all = append(all, worked{fields[0], fields[1], fields[2], time.Duration(n), 0})
		}
		all[i].last = time.Duration(n)
	}
	return all
}

// begun returns how many workers of a member have begun.
func (s shell) begun(member string) (n int) {
	for _, w := range s.worked() {
		if w.member == member {
			n++
		}
	}
	return n
}

// A member that is stopped for longer than its lease loses its parts. Its work ends before others begin, although azconc itself can do
// nothing, and once it goes on it takes part again.
func TestAStoppedMemberOfAGroupDoesNotWorkBesideTheOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it takes as long as a lease, and this is a short run")
	}
	server := httptest.NewServer(aztest.New(nil).BlobHandler())
	t.Cleanup(server.Close)
	s := newShell(t, aztest.ConnectionString(server.URL+"/"+aztest.Account))
	if code, _, said := s.run("container", "create", "jobs"); code != 0 {
		t.Fatal(said)
	}
	start := func(name string) *exec.Cmd {
		cmd, said := s.command("group", "run", "jobs/tree", "--parts", "2", "--duration", "15s", "--drain", "500ms", "--owner", name, "--", "sh", "-c", member)
		cmd.Env = append(cmd.Env, "MEMBER="+name)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if cmd.ProcessState == nil { // the test has failed
				_ = cmd.Process.Signal(syscall.SIGCONT)
				_ = cmd.Process.Signal(syscall.SIGTERM)
				_ = cmd.Wait()
			}
			t.Logf("%s said %.500q", name, said)
		})
		return cmd
	}
	ada := start("ada")
	until(t, "ada works on both parts", func() bool { return s.begun("ada") == 2 })
	if err := ada.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	bob := start("bob")
	until(t, "bob works on both parts", func() bool { return s.begun("bob") == 2 })
	if err := ada.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "ada takes part again", func() bool { return s.begun("ada") > 2 })
	for _, cmd := range []*exec.Cmd{ada, bob} {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the end of a member: %v", err)
		}
	}
	before := map[string]worked{}
	for _, w := range s.worked() {
		if b, ok := before[w.part]; ok {
			said := fmt.Sprintf("part %s: the last sign of life of %s came %v before the first of %s", w.part, b.member, (w.first - b.last).Round(time.Millisecond), w.member)
			if t.Log(said); w.first < b.last {
				t.Error(said)
			}
		}
		before[w.part] = w
	}
}
