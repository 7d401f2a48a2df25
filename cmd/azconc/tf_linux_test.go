package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// onState is a shell with a state "aa", in memory or in Azurite.
func onState(t *testing.T, connection string) shell {
	t.Helper()
	s := newShell(t, connection)
	if code, _, said := s.run("container", "create", "tfstate"); code != 0 {
		t.Fatal(said)
	}
	s.setState("aa")
	return s
}

func (s shell) setState(text string) {
	s.t.Helper()
	file := filepath.Join(s.dir, "state")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if code, _, said := s.run("blob", "put", "tfstate/prod", "--file", file); code != 0 {
		s.t.Fatal(said)
	}
}

// stored returns the state, and whether it is locked.
func (s shell) stored() (state string, locked bool) {
	s.t.Helper()
	_, state, _ = s.run("blob", "get", "tfstate/prod")
	_, lock, said := s.run("tf", "show", "tfstate/prod", "-o", "json")
	if !strings.Contains(lock, `"locked":`) {
		s.t.Fatal(lock, said)
	}
	return state, strings.Contains(lock, `"locked":true`)
}

// adas is the description of a lock of ada's, as metadata have it.
var adas = base64.StdEncoding.EncodeToString([]byte(`{"ID":"6d6b9d1c-8f3e-4b1c-9d3c-0d1f6f5a2b11","Operation":"OperationTypeApply","Info":"","Who":"ada@ci","Version":"1.12.6","Created":"2026-01-31T12:00:05Z","Path":"tfstate/prod"}`))

// TestATerraformKilledAtEveryRequest kills the client by KILL before and after each request, and the lock is free at once: nothing is
// lost or torn, and the next run works. TestAClientKilledAtEveryRequest kills azconc as well.
func TestATerraformKilledAtEveryRequest(t *testing.T) {
	for name, service := range map[string]func(*testing.T) string{
		"in memory": inMemory,
		"azurite":   func(t *testing.T) string { return azuritetest.Account(t).ConnectionString() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name == "azurite" {
				t.Skip("SKIP: a service in memory stands for both, and this is a short run")
			}
			s := onState(t, service(t))
			for n := 1; n <= 5; n++ {
				for i, when := range []string{"before", "after"} {
					s.setState("aa")
					want := []string{"aa", "aab", "aabb"}[max(0, min(2, n-3+i))]
					code, _, said := s.run("tf", "run", "tfstate/prod", "--", "tfclient", "bb", fmt.Sprint(n), when)
					if state, locked := s.stored(); code != 137 || state != want || locked {
						t.Errorf("%s request %d: exit %d, %q, locked %t, %s", when, n, code, state, locked, said)
					}
				}
			}
			if code, _, said := s.run("tf", "run", "tfstate/prod", "--", "tfclient", "bb"); code != 0 {
				t.Error(code, said)
			}
			if state, locked := s.stored(); state != "aabbbb" || locked {
				t.Errorf("%q, locked %t", state, locked)
			}
			// What the azurerm backend leaves.
			s.run("blob", "metadata", "set", "tfstate/prod", "terraformlockid="+adas)
			s.run("blob", "lease", "acquire", "tfstate/prod", "--duration", "infinite", "--lease-id", "6d6b9d1c-8f3e-4b1c-9d3c-0d1f6f5a2b11")
			if _, locked := s.stored(); !locked {
				t.Fatal("not locked")
			}
			code, out, said := s.run("tf", "unlock", "tfstate/prod", "--yes")
			if _, locked := s.stored(); code != 0 || locked {
				t.Errorf("unlock: exit %d, locked %t, %s %s", code, locked, out, said)
			}
		})
	}
}

// A run that is stopped (SIGSTOP) until another one has worked wakes up, and cannot overwrite it.
func TestATerraformThatWasStoppedCannotOverwrite(t *testing.T) {
	t.Parallel()
	s := onState(t, inMemory(t))
	paused := s
	paused.env = append(paused.env[:len(paused.env):len(paused.env)], "TFCLIENT_PAUSE="+filepath.Join(s.dir, "pause"))
	cmd, said := paused.command("tf", "run", "tfstate/prod", "--duration", "15s", "--", "tfclient", "bb")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	s.eventually("pause", 1)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Instead of waiting for the end of the lease, which simulated time does elsewhere: a person who unlocks a run that hangs.
	if code, out, why := s.run("tf", "unlock", "tfstate/prod", "--yes"); code != 0 || !strings.Contains(out, "of ada@6d6b9d1c") {
		t.Fatal(code, out, why)
	}
	other := s
	other.env = append(other.env[:len(other.env):len(other.env)], "TFCLIENT_ID=00000000-0000-4000-8000-00000000000b")
	if code, _, why := other.run("tf", "run", "tfstate/prod", "--", "tfclient", "cc"); code != 0 {
		t.Fatal(why)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "pause.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if state, locked := s.stored(); codeOf(err) != 76 || state != "aacc" || locked || !strings.Contains(said.String(), "if the command has left errored.tfstate") {
		t.Errorf("%v, %q, locked %t, %s", err, state, locked, said)
	}
}

// Ctrl-C reaches the command once, by the terminal; TERM, which follows, would be the second interrupt. A TERM that comes first
// reaches it as an INT, although azconc is in the foreground, where an INT may be a key.
func TestATerraformAtATerminalGetsOneInterrupt(t *testing.T) {
	t.Parallel()
	const counting = `sh -c 'trap "echo int >>got" INT; trap "echo term >>got" TERM; echo $AZCONC_PID >up; until [ -e go ]; do sleep 0.02; done; exit 3'`
	for name, typed := range map[string]bool{"typed": true, "sent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onState(t, inMemory(t))
			keyboard, wait := interactive(t, s, "azconc tf run tfstate/prod -- "+counting+"; echo $? >status")
			pid := s.eventually("up", 1)[0]
			if typed {
				press(t, keyboard, "\x03")
				s.eventually("got", 1)
			}
			for range 2 {
				<-time.After(300 * time.Millisecond) // within 100 ms, a signal counts once
				if err := syscall.Kill(number(t, pid), syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(300 * time.Millisecond) // for the one that must not come
			s.eventually("got", 1)
			if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			status := s.eventually("status", 1)
			if got := s.lines("got"); len(got) != 1 || got[0] != "int" || status[0] != "3" {
				t.Errorf("the command got %q, status %v", got, status)
			}
			wait()
		})
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestATerraformOfACancelledJobIsInterrupted kills the shell that has started azconc, as the runner of a cancelled job does, and
// nothing else. With --end-with-parent the command gets one INT, and can store its state and unlock.
func TestATerraformOfACancelledJobIsInterrupted(t *testing.T) {
	t.Parallel()
	const counting = `trap "echo int >>got" INT; echo $$ >up; until [ -e go ]; do sleep 0.02; done; echo over >done`
	s := onState(t, inMemory(t))
	cmd := exec.Command("sh", "-c", "azconc tf run tfstate/prod --end-with-parent -- sh -c '"+counting+"'; true")
	cmd.Dir, cmd.Env = s.dir, s.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.eventually("up", 1)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	s.eventually("got", 1)
	<-time.After(300 * time.Millisecond) // for the one that must not come
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.eventually("done", 1)
	if got := s.lines("got"); len(got) != 1 || got[0] != "int" {
		t.Errorf("the command got %q, want one INT", got)
	}
}
