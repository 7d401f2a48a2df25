package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// keyedShell is an interactive shell on a terminal with azconc's completions. In it, azconc completes, but runs nothing: it
// records the arguments that the line had when it was entered.
type keyedShell struct {
	t        *testing.T
	keyboard *os.File
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

func newKeyedShell(t *testing.T, args []string, load string) keyedShell {
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
	if err := os.WriteFile(filepath.Join(dir, "decoy.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	keyboard, screen := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), program, args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REAL_AZCONC="+azconc, "RECORD="+filepath.Join(bin, "record"),
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
	press(t, keyboard, load+"\n")
	return keyedShell{t: t, keyboard: keyboard, record: filepath.Join(bin, "record")}
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

func TestShellsCompleteCommandsAndValuesAndNoFiles(t *testing.T) {
	t.Parallel()
	for _, shell := range completingShells {
		t.Run(shell.name, func(t *testing.T) {
			t.Parallel()
			k := newKeyedShell(t, shell.args, shell.load)
			for _, c := range []struct{ keys, want string }{
				{"azconc bl\tge\t", "<blob><get>"},
				{"azconc queue cons\torders --dedu\town\t", "<queue><consume><orders><--dedupe><owner>"},
				{"azconc -o js\tblob list jobs", "<-o><json><blob><list><jobs>"},
				// Local files are offered where one is asked for, and nowhere else.
				{"azconc blob put jobs/a --file dec\t", "<blob><put><jobs/a><--file><decoy.txt>"},
				{"azconc lock run jobs/n -- ./dec\t", "<lock><run><jobs/n><--><./decoy.txt>"},
				{"azconc blob get dec\t", "<blob><get><dec>"},
				{"azconc blob get jobs/a dec\t", "<blob><get><jobs/a><dec>"},
				{"azconc nosuch dec\t", "<nosuch><dec>"},
				{"azconc blob get --if-match 'a b' dec\t", "<blob><get><--if-match><a b><dec>"},
				{"azconc blob put --content-type dec\t", "<blob><put><--content-type><dec>"},
			} {
				if got := k.enter(c.keys); got != c.want {
					t.Errorf("%q enters %s, want %s", c.keys, got, c.want)
				}
			}
		})
	}
}
