package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/azconc/azconc/pkg/aztest"
)

// openTerminal returns both ends of a new terminal: writing to keyboard types.
func openTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIP: no terminals here: %v", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		screen, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("SKIP: no terminals here: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	t.Cleanup(func() {
		if fd := int(keyboard.Fd()); t.Failed() && unix.SetNonblock(fd, true) == nil {
			shown := make([]byte, 4096)
			n, _ := unix.Read(fd, shown)
			t.Logf("the terminal shows %q", shown[:max(n, 0)])
		}
	})
	return keyboard, screen
}

// interactive runs a script in a shell with job control on a terminal, and returns what is typed on, and how to wait for
// the shell's end.
func interactive(t *testing.T, s shell, script string) (keyboard *os.File, wait func()) {
	t.Helper()
	keyboard, screen := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -m; "+script)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	return keyboard, func() {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the shell does not end")
			_ = cmd.Process.Kill()
			<-ended
		}
	}
}

func press(t *testing.T, keyboard *os.File, keys string) {
	t.Helper()
	if _, err := keyboard.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// onMemory is a shell with a service in memory and a container for locks.
func onMemory(t *testing.T) shell {
	t.Helper()
	server := httptest.NewServer(aztest.New(nil).BlobHandler())
	t.Cleanup(server.Close)
	s := newShell(t, aztest.ConnectionString(server.URL+"/"+aztest.Account))
	if code, _, said := s.run("container", "create", "locks"); code != 0 {
		t.Fatal(said)
	}
	return s
}

// A command that is suspended gives the terminal back to the shell, and gets it again when it goes on.
func TestACommandUnderALockCanBeSuspended(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	keyboard, wait := interactive(t, s, `azconc lock run locks/tty -- sh -c 'echo up > up; read line; echo $line > got; exit 3'
		echo $? > first; fg; echo $? > second`)
	s.eventually("up", 1)
	press(t, keyboard, "\x1a")
	if got := s.eventually("first", 1); got[0] != "148" {
		t.Errorf("suspended: status %s, want 148", got[0])
	}
	press(t, keyboard, "hello\n")
	if got := s.eventually("second", 1); got[0] != "3" {
		t.Errorf("resumed: status %s, want 3", got[0])
	}
	if got := s.lines("got"); len(got) != 1 || got[0] != "hello" {
		t.Errorf("the command has read %q", got)
	}
	wait()
}

// A command whose stdin is no terminal is suspended with azconc, too. It must not go on while nothing is renewed. It starts no
// processes: one that waits for its vforked child, which is stopped, is not stopped itself, although it does nothing.
func TestASuspensionStopsTheCommandToo(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	keyboard, wait := interactive(t, s, `azconc lock run locks/piped -- sh -c 'echo $$ > pid; until [ -e done ]; do :; done; exit 3' < /dev/null
		echo $? > first; until [ -e seen ]; do sleep 0.02; done; fg; echo $? > second`)
	s.eventually("pid", 1)
	press(t, keyboard, "\x1a")
	if got := s.eventually("first", 1); got[0] != "148" {
		t.Errorf("suspended: status %s, want 148", got[0])
	}
	for tries := 0; statOf(t, s.lines("pid")[0])[0] != "T"; tries++ {
		if tries == 3000 {
			t.Fatal("the command goes on, and nobody renews")
		}
		<-time.After(10 * time.Millisecond)
	}
	for _, name := range []string{"done", "seen"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.eventually("second", 1); got[0] != "3" {
		t.Errorf("resumed: status %s, want 3", got[0])
	}
	wait()
}

// statOf returns the fields of /proc/<pid>/stat, from the state on.
func statOf(t *testing.T, pid string) []string {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.Fields(rest)
}

// A command that stopped itself hung everything: azconc went on, so that the shell gave no prompt, and no key reached the command. It is a
// stopped job, which goes on when the shell continues it, even one that has left the job's process group.
func TestACommandThatStopsItselfIsAStoppedJob(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"TSTP":                     `sh -c 'kill -TSTP $$; read line; echo $line > got; exit 3'`,
		"STOP":                     `sh -c 'kill -STOP $$; read line; echo $line > got; exit 3'`,
		"in a group of its own":    `perl -e 'setpgrp; kill STOP => $$; open F, ">", "got"; print F "hello\n"; close F; exit 3'`,
		"a shell's own suspension": `bash -c 'suspend -f; read line; echo $line > got; exit 3'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(strings.Fields(command)[0]); err != nil {
				t.Skipf("SKIP: %v", err)
			}
			s := onMemory(t)
			keyboard, wait := interactive(t, s, `azconc lock run locks/self -- `+command+`
				echo $? > first; fg; echo $? > second`)
			if got := s.eventually("first", 1); got[0] != "148" && got[0] != "147" { // TSTP or STOP
				t.Errorf("stopped: status %s, want 148", got[0])
			}
			press(t, keyboard, "hello\n")
			if got := s.eventually("second", 1); got[0] != "3" {
				t.Errorf("resumed: status %s, want 3", got[0])
			}
			if got := s.lines("got"); len(got) != 1 || got[0] != "hello" {
				t.Errorf("the command has read %q", got)
			}
			wait()
		})
	}
}

// A background job leaves the terminal to the foreground job.
func TestACommandInTheBackgroundLeavesTheTerminalAlone(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	// The shell runs nothing meanwhile: after that it would take the terminal back itself.
	keyboard, wait := interactive(t, s, `azconc lock run locks/back -- sh -c 'echo up > up; until [ -e got ]; do sleep 0.02; done' &
		until [ -e up ]; do :; done; echo $$ > shell; read line; echo $line > got; wait; echo end > end`)
	sh := s.eventually("shell", 1)[0]
	if in := statOf(t, sh)[5]; in != sh { // tpgid
		t.Errorf("process group %s is in the foreground, want the shell's, %s", in, sh)
	}
	press(t, keyboard, "hello\n")
	if got := s.eventually("got", 1); got[0] != "hello" {
		t.Errorf("the shell has read %q", got)
	}
	s.eventually("end", 1)
	wait()
}
