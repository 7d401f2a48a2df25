package main

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// keyedShell is an interactive shell on a terminal with azconc's completions. In it, azconc completes, but runs nothing: it
// records the arguments that the line had when it was entered.
type keyedShell struct {
	t        *testing.T
	keyboard *os.File
	dir      string // the working directory
	record   string
}

// completingShells are the shells that azconc has completions for, and how to start each without a user's settings.
var completingShells = []struct {
	name string
	args []string
	load string
}{
	{"bash", []string{"bash", "--noprofile", "--norc", "-i"}, `bind 'set bell-style none'; PS1=; source <(azconc completion bash)`},
	{"bash with bash-completion", []string{"bash", "--noprofile", "--norc", "-i"},
		`bind 'set bell-style none'; PS1=; source /usr/share/bash-completion/bash_completion; source <(azconc completion bash)`},
	{"zsh", []string{"zsh", "-f", "-i"}, `PS1=; autoload -U compinit; compinit -u -D; source <(azconc completion zsh)`},
	{"fish", []string{"fish", "--no-config", "-i"}, `azconc completion fish | source`},
}

// recorder stands for azconc on the path of a shell.
const recorder = `#!/bin/sh
case $1 in
completion | __complete*) exec "$REAL_AZCONC" "$@" ;;
esac
printf '<%s>' "$@" >>"$RECORD"
echo >>"$RECORD"
`

func newKeyedShell(t *testing.T, args []string, load, connection string) keyedShell {
	t.Helper()
	program, err := exec.LookPath(args[0])
	if err != nil {
		t.Skip("SKIP: " + args[0] + " is not installed")
	}
	if strings.Contains(load, "/bash_completion;") {
		if _, err := os.Stat("/usr/share/bash-completion/bash_completion"); err != nil {
			t.Skip("SKIP: the package bash-completion is not installed")
		}
	}
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "azconc"), []byte(recorder), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"decoy.txt", "jobs-decoy", "state-decoy"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keyboard, screen := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), program, args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+connection, "REAL_AZCONC="+azconc, "RECORD="+filepath.Join(bin, "record"),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+bin, "TERM=dumb", "LC_ALL=C.UTF-8", "HISTFILE=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, keyboard) // drains the screen until the shell ends
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	k := keyedShell{t: t, keyboard: keyboard, dir: dir, record: filepath.Join(bin, "record")}
	press(t, keyboard, load+"\n")
	return k
}

// enter types keys and a return, and returns the arguments that azconc gets, each in <>.
func (k keyedShell) enter(keys string) string {
	k.t.Helper()
	if err := os.RemoveAll(k.record); err != nil {
		k.t.Fatal(err)
	}
	press(k.t, k.keyboard, keys+"\n")
	var text []byte
	until(k.t, keys+" runs something", func() bool {
		text, _ = os.ReadFile(k.record)
		return strings.HasSuffix(string(text), "\n")
	})
	return strings.TrimSuffix(string(text), "\n")
}

func TestShellsCompleteCommandsAndNamesAndNoFiles(t *testing.T) {
	t.Parallel()
	connection := inMemory(t)
	s := newShell(t, connection)
	for _, args := range []string{"container create jobs", "queue create orders", "table create orders"} {
		if code, _, said := s.run(strings.Fields(args)...); code != 0 {
			t.Fatal(said)
		}
	}
	for _, name := range []string{"state.json", "2026/01", "a:1", "x$(touch pwned)", "x`touch pwned`"} {
		if code, _, said := s.run("blob", "put", "jobs/"+name, "--file", os.DevNull); code != 0 {
			t.Fatal(said)
		}
	}
	for _, shell := range completingShells {
		t.Run(shell.name, func(t *testing.T) {
			t.Parallel()
			k := newKeyedShell(t, shell.args, shell.load, connection)
			for _, c := range []struct{ keys, want string }{
				{"azconc bl\tge\t", "<blob><get>"},
				{"azconc queue cons\tor\t--dedu\town\t", "<queue><consume><orders><--dedupe><owner>"},
				{"azconc -o js\tblob list jo\t", "<-o><json><blob><list><jobs>"},
				{"azconc --output=js\tversion", "<--output=json><version>"},
				{"azconc blob get jo\tsta\t", "<blob><get><jobs/state.json>"},
				{"azconc blob get jobs/20\t0\t", "<blob><get><jobs/2026/01>"},
				{"azconc blob get jobs/a:\t", "<blob><get><jobs/a:1>"},
				{"azconc table query or\t", "<table><query><orders>"},
				// Names that a shell would run are not offered.
				{"azconc blob get jobs/x\t\t", "<blob><get><jobs/x>"},
				// Local files are offered where one is asked for, and nowhere else.
				{"azconc blob put jobs/a --file dec\t", "<blob><put><jobs/a><--file><decoy.txt>"},
				{"azconc lock run jobs/n -- ./dec\t", "<lock><run><jobs/n><--><./decoy.txt>"},
				{"azconc blob get dec\t", "<blob><get><dec>"},
				{"azconc blob get jobs/a dec\t", "<blob><get><jobs/a><dec>"},
				{"azconc nosuch dec\t", "<nosuch><dec>"},
				{"azconc blob get --if-match 'a b' dec\t", "<blob><get><--if-match><a b><dec>"},
				{"azconc blob get --nosuch dec\t", "<blob><get><--nosuch><dec>"},
				{"azconc blob put --content-type dec\t", "<blob><put><--content-type><dec>"},
			} {
				got := k.enter(c.keys)
				for tries := 1; got != c.want && tries < 3; tries++ { // a loaded machine may need longer than azconc waits
					got = k.enter(c.keys)
				}
				if got != c.want {
					t.Errorf("%q enters %s, want %s", c.keys, got, c.want)
				}
			}
			if _, err := os.Stat(filepath.Join(k.dir, "pwned")); err == nil {
				t.Error("the name of a blob was run as a command")
			}
		})
	}
}

// An account that accepts connections and never answers must not keep the user waiting, nor have local files offered.
func TestShellsDoNotWaitForAnAccountThatHangs(t *testing.T) {
	t.Parallel()
	hung, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hung.Close() })
	hanging := aztest.ConnectionString(fmt.Sprint("http://", hung.Addr(), "/", aztest.Account))
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, shell := range completingShells {
		t.Run(shell.name, func(t *testing.T) {
			t.Parallel()
			for _, connection := range []string{hanging, aztest.ConnectionString(gone.URL + "/" + aztest.Account), ""} {
				k := newKeyedShell(t, shell.args, shell.load, connection)
				k.enter("azconc ready") // not the shell's start is timed
				took := time.Hour
				for tries := 0; took > 2*time.Second && tries < 3; tries++ { // a loaded machine may need longer once
					began := time.Now()
					if got := k.enter("azconc blob get dec\t"); got != "<blob><get><dec>" {
						t.Errorf("it enters %s", got)
					}
					took = min(took, time.Since(began))
				}
				if took > 2*time.Second {
					t.Errorf("TAB takes %v", took)
				}
			}
		})
	}
}
