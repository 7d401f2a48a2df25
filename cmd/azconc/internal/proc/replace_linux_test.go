package proc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// replacing is a program in Perl: 100 processes, each of which starts another one and ends, over and over. They end by themselves.
const replacing = `$SIG{TERM} = "IGNORE"; my $end = time + 4; my $mark = $ARGV[0];
for (1..100) { if (!fork) { while (time < $end) { exit if fork; select undef, undef, undef, 0.002 } exit } }
$| = 1; print "up\n"; sleep 4;`

// A process whose parent had ended between two reads of /proc counted as another's. Most of 500 processes that
// replaced themselves were not found, and went on for 2 s after the lease was free.
func TestAProcessWhoseParentEndedMeanwhileIsFound(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	p, err := inspect(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	p.parent = 1 << 30 // as it was read before it became this process's
	reused := p
	reused.started++
	all := []process{p, reused}
	if settleParents(all); all[0].parent != os.Getpid() || all[1].parent != p.parent {
		t.Errorf("the parents are %d and %d, want %d and %d", all[0].parent, all[1].parent, os.Getpid(), p.parent)
	}
}

// Processes that replace themselves are ended, too.
func TestProcessesThatReplaceThemselvesAreEnded(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it fills the table of processes, and this is a short run")
	}
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("SKIP: no perl here, which starts processes quickly enough")
	}
	if !hindered(t, apart) { // this process gets thousands of zombies, which fill the table until it ends
		return
	}
	mark := fmt.Sprintf("replacing-%d", os.Getpid())
	var s Status
	ended, stopped := false, false
	for try := 0; try < 3 && !ended; try++ { // the load is the mean of a minute: what has just begun does not count yet
		r := startWith(t, &Command{}, fmt.Sprintf("exec %s -e '%s' %s", perl, replacing, mark))
		r.out.wait(1)
		select {
		case r.stop <- 0:
			s, stopped = <-r.status, true
		case s = <-r.status: // it has ended by itself
			stopped = false
		}
		ended = s.Signal == "killed" && !s.Left
		for pid := 1; pid > 0; { // reaps the zombies of this try
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
	if !stopped {
		t.Skip("SKIP: this machine is so slow that the processes end by themselves before they are to be ended")
	}
	if !ended && busy() {
		t.Skip("SKIP: this machine is so busy that new processes come faster than they are ended, which azconc has reported")
	}
	if !ended {
		t.Errorf("%+v", s)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// busy reports whether more than three processes wait for each processor.
func busy() bool {
	text, err := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(text), " ")
	n, _ := strconv.ParseFloat(load, 64)
	return err == nil && n > 3*float64(runtime.NumCPU())
}

// marked returns the living processes with a word in their command line.
func marked(t *testing.T, word string) (found []int) {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if p.pid != os.Getpid() && !p.zombie() && strings.Contains(string(line), word) {
			found = append(found, p.pid)
		}
	}
	return found
}
