package proc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hindrance names the environment variable that hinders azconc and its watchdog: with the names of system calls that are
// refused, with "proc", which makes /proc unreadable, with "unprivileged", which makes processes of other users and higher priorities unreachable, and with
// apart, which hinders nothing: the test is in a process of its own.
const (
	hindrance = "AZCONC_TEST_HINDER"
	apart     = "apart"
)

var refusable = map[string]int{"kill": unix.SYS_KILL, "pidfd_open": unix.SYS_PIDFD_OPEN, "pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL}

// hinder applies the hindrance to this process.
func hinder() {
	for _, name := range strings.Fields(os.Getenv(hindrance)) {
		if name == "proc" {
			procfs = "/nonexistent"
		} else if name == "unprivileged" || name == apart {
			continue // it was started so
		} else if err := refuse(refusable[name]); err != nil {
			panic(err)
		}
	}
}

// refuse makes a system call of this process fail with EPERM from now on, as the filters of old container runtimes do.
func refuse(call int) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(call)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}

// hindered reports whether this process is hindered, and with it the watchdogs that it starts. If it is not, the test is run again
// in a process that is.
func hindered(t *testing.T, by string) bool {
	t.Helper()
	if os.Getenv(hindrance) != "" {
		return true
	}
	again := func(name string) ([]byte, error) {
		args := []string{os.Args[0], "-test.run=^" + name + "$", "-test.v"}
		if strings.Contains(by, "unprivileged") {
			args = append([]string{"setpriv", "--bounding-set=-kill,-sys_nice", "--inh-caps=-kill,-sys_nice"}, args...)
		}
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Env = append(os.Environ(), hindrance+"="+by)
		return cmd.CombinedOutput()
	}
	if out, err := again(""); err != nil {
		t.Skipf("SKIP: no system call can be refused here: %v: %s", err, out)
	}
	out, err := again(t.Name())
	if err == nil && strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		t.Skip(string(out)) // which has the reason
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%s: %v: %s", by, err, out)
	}
	return false
}

// away is a command with a process in a session of its own. Both ignore TERM.
const away = `echo $PPID; trap '' TERM; (setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.02; done' &); echo $$; while :; do sleep 0.02; done`

// living returns those of the processes that are alive, and ends them.
func living(pids []int) (left []int) {
	for _, pid := range pids {
		if alive(pid) {
			left = append(left, pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return left
}

// Container runtimes whose filters do not know the system calls for process descriptors refuse them with EPERM.
func TestEverythingIsEndedWhereProcessDescriptorsAreRefused(t *testing.T) {
	for _, calls := range []string{"pidfd_open", "pidfd_send_signal", "pidfd_open pidfd_send_signal"} {
		if !hindered(t, calls) {
			continue
		}
		r := start(t, away)
		all := pids(r.out.wait(3))
		r.stop <- 0
		if s := <-r.status; s.Signal != "killed" || s.Left {
			t.Errorf("%+v", s)
		}
		if left := living(all); len(left) != 0 {
			t.Errorf("processes %v are still there", left)
		}
		return
	}
}

// Where /proc cannot be read, the command itself is ended, and it is not claimed that the others are gone: neither by the
// watchdog, nor by azconc when it ends what the watchdog has left.
func TestAnUnreadableProcIsNotAnEmptyOne(t *testing.T) {
	if !hindered(t, "proc") {
		return
	}
	for name, end := range map[string]func(*running, int){
		"watchdog": func(r *running, _ int) { r.stop <- 0 },
		"azconc":   func(_ *running, watchdog int) { _ = syscall.Kill(watchdog, syscall.SIGKILL) },
	} {
		r := start(t, away)
		all := pids(r.out.wait(3))
		end(r, all[0])
		if s := <-r.status; s.Signal != "killed" || !s.Left {
			t.Errorf("%s: %+v", name, s)
		}
		if left := living(all); len(left) != 1 {
			t.Errorf("%s: processes %v are still there, want the one that has left the group", name, left)
		}
	}
}

// A process of another user cannot be killed. The watchdog takes its time to find out, and reports it; azconc awaits that.
func TestAProcessThatCannotBeKilledIsReported(t *testing.T) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Getuid() != 0 {
		t.Skip("SKIP: root and setpriv are needed to run a process as another user")
	}
	if !hindered(t, "unprivileged") {
		return
	}
	r := start(t, `echo $PPID $$; `+setpriv+` --reuid=65534 --regid=65534 --clear-groups sh -c 'echo $$; exec sleep 60' & trap '' TERM; while :; do sleep 0.02; done`)
	all := pids(r.out.wait(2))
	defer func() {
		_ = exec.CommandContext(t.Context(), setpriv, "--reuid=65534", "kill", fmt.Sprint(all[2])).Run()
	}()
	began := time.Now()
	r.stop <- 0
	for alive(all[1]) {
		runtime.Gosched()
	}
	for alive(all[0]) && time.Since(began) < gone {
		if !alive(all[2]) {
			t.Fatal("the process of another user was killed")
		}
		<-time.After(10 * time.Millisecond)
	}
	if took := time.Since(began); took < gone {
		t.Errorf("the watchdog was ended after %v", took)
	}
	if s := <-r.status; s.Signal != "killed" || !s.Left {
		t.Errorf("%+v", s)
	}
}
