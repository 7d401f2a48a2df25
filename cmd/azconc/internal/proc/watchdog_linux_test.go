package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What moves to another session and loses its parent is ended at the deadline all the same.
func TestADeadlineEndsWhatHasLeftTheGroup(t *testing.T) {
	deadlines := make(chan Deadline)
	r := startWith(t, &Command{Deadline: After(time.Hour), Deadlines: deadlines},
		`trap '' TERM; (setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.02; done' &); echo $$; while :; do sleep 0.02; done`)
	out := r.out.wait(2)
	deadlines <- After(10 * time.Millisecond)
	if s := <-r.status; s.Signal != "killed" || s.Left {
		t.Errorf("%+v", s)
	}
	for _, pid := range pids(out) {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestALaterDeadlineReplacesAnEarlierOne(t *testing.T) {
	deadlines := make(chan Deadline)
	r := startWith(t, &Command{Deadline: After(5 * time.Second), Deadlines: deadlines}, `echo up; sleep 5.2; exit 3`)
	r.out.wait(1)
	deadlines <- After(time.Hour)
	if s := <-r.status; s.Code != 3 {
		t.Errorf("%+v", s)
	}
}

// A command gets the files that azconc has inherited under the numbers they have here.
func TestInheritedFilesKeepTheirNumbers(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const number = 57
	if err := unix.Dup3(int(file.Fd()), number, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(number)
	<-start(t, fmt.Sprintf(`echo text >/proc/self/fd/%d`, number)).status
	if text, err := os.ReadFile(file.Name()); err != nil || string(text) != "text\n" {
		t.Errorf("written %q, %v", text, err)
	}
}

// It takes longer to end many processes, and where this process is late, so that begins earlier.
func TestADeadlineComesEarlierForManyProcesses(t *testing.T) {
	for _, c := range []struct {
		n, nice    int
		late, want time.Duration
	}{
		{1_000_000, 0, 0, ahead}, {2000, 0, 0, ahead}, {100, 0, 0, 2 * time.Second}, {10, 0, 0, 200 * time.Millisecond},
		{10, 0, 100 * time.Millisecond, 600 * time.Millisecond}, {1, 0, time.Hour, ahead}, {10, lowest, 0, 600 * time.Millisecond},
	} {
		if got := margin(slices.Repeat([]process{{nice: c.nice}}, c.n), c.late); got != c.want {
			t.Errorf("the end of %d processes of priority %d begins %v earlier where looks are %v late, want %v", c.n, c.nice, got, c.late, c.want)
		}
	}
	for late, want := range map[time.Duration]time.Duration{0: 20 * time.Second, time.Second: 24 * time.Second, time.Hour: 30 * time.Second} {
		if got := (&watchdog{most: time.Minute, late: late}).near(); got != want {
			t.Errorf("a deadline is near where looks are %v late when %v of a minute are left, want %v", late, got, want)
		}
	}
	w := watchdog{}
	if w.look(); w.killed {
		t.Error("the deadline has come, and there is none")
	}
}

// Where the watchdog may have no higher priority, the processes that run get a lower one as soon as the lease must be in doubt, before any of
// them is ended: they would keep the watchdog from its work. Those that have left the group get it, too. What sleeps does not: on a busy
// machine, 60 of 97 that had the lowest priority took two seconds to end.
func TestACommandWhoseDeadlineIsNearComesLast(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("SKIP: no setpriv here, which takes a right away")
	}
	if !hindered(t, "unprivileged") {
		return
	}
	deadlines := make(chan Deadline)
	r := startWith(t, &Command{Deadline: After(time.Hour), Deadlines: deadlines},
		`(setsid sh -c 'echo busy $$; while :; do :; done' &); sleep 300 & echo busy $$; echo asleep $!; while :; do :; done`)
	out := r.out.wait(3)
	all := pids(out)
	_, last, _ := strings.Cut(out, "asleep ")
	asleep := pids(last)[0]
	for p, _ := inspect(asleep); p.state != 'S'; p, _ = inspect(asleep) {
		runtime.Gosched()
	}
	nice := func(pid int) int {
		p, _ := inspect(pid)
		return p.nice
	}
	for _, pid := range all {
		if nice(pid) != 0 {
			t.Errorf("process %d has the priority %d before the deadline is near", pid, nice(pid))
		}
	}
	deadlines <- After(20 * time.Minute)
	for _, pid := range all {
		for pid != asleep && alive(pid) && nice(pid) != lowest {
			runtime.Gosched()
		}
		if !alive(pid) {
			t.Errorf("process %d was ended, with the priority it had", pid)
		}
	}
	if nice(asleep) != 0 {
		t.Errorf("the process that sleeps has got the priority %d", nice(asleep))
	}
	r.stop <- 0
	<-r.status
}

// The promise, that all are gone half a second after the deadline, is kept for many processes.
func TestADeadlineEndsManyProcessesInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it fills the table of processes, and this is a short run")
	}
	many := func(n int) (*running, chan<- Deadline) {
		deadlines := make(chan Deadline)
		return startWith(t, &Command{Deadline: After(time.Hour), Deadlines: deadlines},
			fmt.Sprintf(`trap '' TERM; for i in $(seq %d); do sleep 300 & done; echo up; wait`, n)), deadlines
	}
	r, deadlines := many(500)
	if r.out.wait(1) != "up\n" { // in a container that may have fewer processes
		<-r.status
		if r, deadlines = many(100); r.out.wait(1) != "up\n" {
			t.Fatal("not even 100 processes can be started here")
		}
	}
	began := time.Now()
	deadlines <- After(3 * time.Second)
	s := <-r.status
	took := time.Since(began)
	if s.Signal != "killed" || s.Left || took > 15*time.Second { // a busy machine ends 500 processes more slowly
		t.Errorf("%+v after %v", s, took)
	}
	t.Logf("ended %v before the end of the lease", 3500*time.Millisecond-took)
}

// The output that the processes of a killed watchdog keep open does not keep azconc from ending them.
func TestWhatAKilledWatchdogHasLeftIsEndedAtOnce(t *testing.T) {
	out, ended := new(lines), make(chan error, 1)
	out.more.L = &out.mu
	go func() {
		_, err := (&Command{Args: []string{"sh", "-c", away}, Stdout: out}).Run(nil)
		out.end()
		ended <- err
	}()
	all := pids(out.wait(3))
	began := time.Now()
	_ = syscall.Kill(all[0], syscall.SIGKILL)
	if err := <-ended; !errors.Is(err, errWatchdog) || time.Since(began) >= linger+10*time.Second { // a busy machine takes its time
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if left := living(all); len(left) != 0 {
		t.Errorf("processes %v are still there", left)
	}
}

// A watchdog that is stopped would not notice that azconc has died. Azconc sees that it does not answer, and ends everything.
func TestAWatchdogThatDoesNotAnswerIsReplaced(t *testing.T) {
	defer func(d time.Duration) { answerWithin = d }(answerWithin)
	answerWithin = 500 * time.Millisecond
	deadlines := make(chan Deadline)
	out, ended := new(lines), make(chan error, 1)
	out.more.L = &out.mu
	go func() {
		_, err := (&Command{Args: []string{"sh", "-c", away}, Stdout: out, Deadline: After(time.Hour), Deadlines: deadlines}).Run(nil)
		out.end()
		ended <- err
	}()
	all := pids(out.wait(3))
	for range 3 {
		deadlines <- After(time.Hour)
		<-time.After(answerWithin)
	}
	if !alive(all[1]) {
		t.Fatal("the watchdog answers, and the command was ended")
	}
	_ = syscall.Kill(all[0], syscall.SIGSTOP)
	// One of its threads may still answer the first deadline after the signal. A lease that is renewed brings others.
	patience := time.After(20 * time.Second)
	for goesOn := true; goesOn; {
		select {
		case deadlines <- After(time.Hour):
			<-time.After(answerWithin)
		case err := <-ended:
			if goesOn = false; !errors.Is(err, errNoAnswer) {
				t.Error(err)
			}
		case <-patience:
			goesOn = false
			t.Error("the command goes on, with a watchdog that is stopped")
			_ = syscall.Kill(all[0], syscall.SIGKILL)
			<-ended
		}
	}
	if left := living(all); len(left) != 0 {
		t.Errorf("processes %v are still there", left)
	}
}

// A file that was opened before the limit of files was lowered is inherited, although nothing can be put at its number.
func TestAFileAboveTheLimitKeepsItsNumber(t *testing.T) {
	const number, limit = 700, 600
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Dup3(int(file.Fd()), number, 0); err != nil {
		t.Skipf("SKIP: no file can have the number %d here: %v", number, err)
	}
	defer unix.Close(number)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	// The watchdog closes its own copy just after it has started the command.
	r := start(t, fmt.Sprintf(`echo text >/proc/self/fd/%[1]d
		for i in $(seq 500); do test -e /proc/$PPID/fd/%[1]d || exit 0; sleep 0.02; done
		ls -l /proc/$PPID/fd; exit 1`, number))
	if s := <-r.status; s.Code != 0 {
		t.Errorf("the watchdog keeps the file open: %+v\n%s", s, r.out.wait(0))
	}
	if text, err := os.ReadFile(file.Name()); err != nil || string(text) != "text\n" {
		t.Errorf("written %q, %v", text, err)
	}
}

// Without /proc, azconc cannot start itself as a watchdog. That was reported as a command that does not exist.
func TestAWatchdogThatCannotBeStartedIsNoMissingCommand(t *testing.T) {
	present := self
	defer func() { self = present }()
	self = "/nonexistent/exe"
	_, err := (&Command{Args: []string{"true"}}).Run(nil)
	if e, ok := errors.AsType[*StartError](err); !ok || e.Code != 126 {
		t.Errorf("%v, want a *StartError with 126", err)
	}
}
