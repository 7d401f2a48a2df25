//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var shellSnippet = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// ownFiles makes the user's own commands and documents, which the snippets name, in a folder.
const ownFiles = `
own_files() {
	for script in nightly.sh deploy.sh encode.sh scheduler report.sh charge.sh handle print-order; do
		printf '#!/bin/sh\ncat >/dev/null\n' >$script
	done
	printf '#!/bin/sh\ncat >/dev/null\necho "{\\"op\\": \\"insert\\", \\"row\\": \\"17\\", \\"entity\\": {\\"n\\": 1}}"\n' >order-to-rows
	printf '#!/bin/sh\n>worked\n' >worker
	chmod +x *.sh scheduler handle worker print-order order-to-rows
	echo '{"n": 1}' | tee new.json >f.json
	echo pears >more.txt
}
`

// running are the lines that run until they are interrupted.
var running = regexp.MustCompile(`(?m)^azconc group run .* -- \./worker`)

// inATerminalOfItsOwn is azconc dev up as a user carries it out: the shell goes on with the line that it prints.
const inATerminalOfItsOwn = `
azconc dev up >"$STATE/up.sh" 2>"$STATE/up.err" &
trap "kill -TERM $!; wait $! || true" EXIT
until [ -s "$STATE/up.sh" ]; do sleep 0.1; done
. "$STATE/up.sh"
`

// TestANewcomerCanFollowTheReadmes does what the README files say, from the clone on, in one shell and on an account that is
// empty at first. The lines run as they are printed. The Go program is in a module of its own. There is no Node.js.
func TestANewcomerCanFollowTheReadmes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: it runs each line of two pages, and this is a short run")
	}
	repository, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Skip("SKIP: there is no git repository to clone")
	}
	home, state := t.TempDir(), t.TempDir()
	script := "set -eu\nexport EDITOR=true\n" + ownFiles + "cd " + home + "\n"
	for _, name := range []string{"../../README.md", "README.md"} {
		for _, snippet := range snippets(t, name) {
			switch {
			case strings.HasPrefix(snippet, "git clone "):
				// TestTheDemoShowsTheBugAndTheCure runs the demo.
				snippet = regexp.MustCompile(`(?m)^scripts/(demo|test) .*$`).ReplaceAllString(snippet, "own_files")
			case strings.HasPrefix(snippet, "azconc container create jobs\n"):
				snippet = inATerminalOfItsOwn + snippet
			case strings.HasPrefix(snippet, "mkdir ../shop "):
				snippet += "cp \"$STATE/main.go\" main.go\ngo mod tidy\ngo run . >\"$STATE/ran\"\nown_files\n"
			}
			script += running.ReplaceAllString(snippet, "{ ${0} & until [ -e worked ]; do sleep 0.1; done; kill -TERM $$!; wait $$! || true; }")
		}
	}
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "```go\npackage main\n")
	program, _, _ = strings.Cut("package main\n"+program, "```")
	if err := os.WriteFile(filepath.Join(state, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	withoutNode := t.TempDir()
	for _, name := range []string{"node", "npm"} {
		if err := os.WriteFile(filepath.Join(withoutNode, name), []byte("#!/bin/sh\necho $0 was called >>"+state+"/node\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cache, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Fields(string(cache))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-x", "-c", script)
	shell.WaitDelay = 20 * time.Second
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGTERM) }
	shell.Env = append(os.Environ(), "PATH="+withoutNode+string(os.PathListSeparator)+os.Getenv("PATH"), "STATE="+state, "AZURE_STORAGE_CONNECTION_STRING=",
		// The clone has the commits of this repository, the installation stays here, packages are built once for all folders, and
		// the modules are those of this repository, which have been verified.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+strings.TrimSpace(string(repository))+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/azconc/azconc",
		"GOPATH="+filepath.Join(home, "go"), "GOBIN=", "GOCACHE="+caches[0], "GOMODCACHE="+caches[1], "GOFLAGS=-trimpath", "GOSUMDB=off")
	out, err := shell.CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Fatalf("%v after\n%s", err, strings.Join(lines[max(0, len(lines)-25):], "\n"))
	}
	if said, err := os.ReadFile(filepath.Join(state, "node")); err == nil {
		t.Errorf("%s", said)
	}
	if got, _ := os.ReadFile(filepath.Join(state, "ran")); string(got) != "changed: true requests: 2\nerror: <nil>\n" {
		t.Errorf("the Go program has printed %q", got)
	}
}

// Two replicas start the job of a night, the second one while the job runs or after it. Under a lock, that would run it again.
func TestTheNightlyLineOfTheReadmeRunsOnce(t *testing.T) {
	t.Parallel()
	line := ""
	for _, snippet := range snippets(t, "../../README.md") {
		for l := range strings.Lines(snippet) {
			if strings.Contains(l, "./nightly.sh") {
				line += l
			}
		}
	}
	if strings.Count(line, "\n") != 1 {
		t.Fatalf("the README has %q, want one line with ./nightly.sh", line)
	}
	for name, job := range map[string]string{
		"the second comes after the first": "echo ran >>runs; echo result",
		"the second comes meanwhile":       "echo ran >>runs; until [ -e second ]; do sleep 0.05; done; sleep 1; echo result",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, inMemory(t))
			if code, _, said := s.run("container", "create", "jobs"); code != 0 {
				t.Fatal(said)
			}
			if err := os.WriteFile(filepath.Join(s.dir, "nightly.sh"), []byte("#!/bin/sh\n"+job+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			replica := func() <-chan error {
				cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
				cmd.Dir, cmd.Env = s.dir, s.env
				ended := make(chan error, 1)
				go func() {
					out, err := cmd.Output()
					if err == nil && string(out) != "result\n" {
						err = fmt.Errorf("it prints %q", out)
					}
					ended <- err
				}()
				return ended
			}
			first := replica()
			s.eventually("runs", 1)
			if strings.HasSuffix(name, "after the first") {
				if err := <-first; err != nil {
					t.Error("the first replica:", err)
				}
				first = nil
			}
			second := replica()
			if first != nil {
				if err := os.WriteFile(filepath.Join(s.dir, "second"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := <-first; err != nil {
					t.Error("the first replica:", err)
				}
			}
			if err := <-second; err != nil {
				t.Error("the second replica:", err)
			}
			if runs := s.lines("runs"); len(runs) != 1 {
				t.Errorf("the job has run %d times", len(runs))
			}
		})
	}
}

// snippets returns the shell snippets of a README file, in order.
func snippets(t *testing.T, name string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range shellSnippet.FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	return all
}
