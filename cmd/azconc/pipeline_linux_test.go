package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// block returns the text below the last line "key: |" of a YAML file.
func block(t *testing.T, name, key string) string {
	t.Helper()
	all := blocks(t, name, key)
	return all[len(all)-1]
}

// blocks returns the texts below the lines "key: |" of a YAML file.
func blocks(t *testing.T, name, key string) (all []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", ".github", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	indent := -1
	for line := range strings.SplitSeq(string(data), "\n") {
		own := len(line) - len(strings.TrimLeft(line, " "))
		if indent >= 0 && (own > indent || line == "") {
			all[len(all)-1] += strings.TrimPrefix(line, strings.Repeat(" ", indent+2)) + "\n"
			continue
		}
		indent = -1
		if strings.TrimSpace(line) == key+": |" {
			all, indent = append(all, ""), own
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no %s", name, key)
	}
	return all
}

// TestTheActionRunsWhatTheReleaseLists: the action takes a binary whose checksum the release lists, and no other one.
func TestTheActionRunsWhatTheReleaseLists(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "sha256sum", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("SKIP: no " + tool + " here")
		}
	}
	script := blocks(t, "actions/lock/action.yml", "run")[0]
	release := t.TempDir()
	shell := func(dir, script string, environ ...string) (string, error) {
		cmd := exec.Command("bash", "-c", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	folder := filepath.Join(release, "azconc", "azconc", "releases", "download", "v1.2.3")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := shell(folder, `mkdir azconc_1.2.3_linux_amd64; printf '#!/bin/sh\necho released\n' >azconc_1.2.3_linux_amd64/azconc; chmod +x azconc_*/azconc
tar -czf azconc_1.2.3_linux_amd64.tar.gz azconc_1.2.3_linux_amd64; sha256sum *.tar.gz >checksums.txt`); err != nil {
		t.Fatal(out)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(release)))
	t.Cleanup(server.Close)
	for name, c := range map[string]struct{ version, before, want string }{
		"as listed":    {"v1.2.3", "", ""},
		"not released": {"main", "", "'main' is not a release"},
		"not there":    {"v9.9.9", "", "404"},
		"changed":      {"v1.2.3", "echo x >>azconc_1.2.3_linux_amd64.tar.gz", "FAILED"},
		"not listed":   {"v1.2.3", "echo >checksums.txt", "lists no checksum"},
	} {
		if out, err := shell(folder, "cp -r . ../saved; "+c.before); err != nil {
			t.Fatal(out)
		}
		output := filepath.Join(t.TempDir(), "output")
		out, err := shell(t.TempDir(), script, "AZCONC_VERSION="+c.version, "AZCONC_REPOSITORY=", "GITHUB_SERVER_URL="+server.URL, "RUNNER_OS=Linux", "RUNNER_ARCH=X64",
			"RUNNER_TEMP="+t.TempDir(), "GITHUB_OUTPUT="+output)
		if (err == nil) != (c.want == "") || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v, %s", name, err, out)
		}
		if c.want == "" {
			if said, err := shell(t.TempDir(), `. "`+output+`"; "$azconc"`); err != nil || said != "released\n" {
				t.Errorf("%s: %q, %v", name, said, err)
			}
		}
		if out, err := shell(folder, "rm -r ./*; cp -r ../saved/. .; rm -r ../saved"); err != nil {
			t.Fatal(out)
		}
	}
}

// runner is what a CI runner does: it starts the shell of a step, and when the job is cancelled it signals that shell alone.
type runner struct {
	name   string
	script string
	env    []string
}

// TestACancelledJobFreesTheLock: the script of the action and of the template, and a step whose shell does not exec azconc, are
// cancelled as the runners cancel: INT, then TERM, then KILL, to the shell alone. The lock becomes free, and nothing of the command
// is left. (setup-terraform#441: a lock outlives the cancelled job.)
func TestACancelledJobFreesTheLock(t *testing.T) {
	t.Parallel()
	const work = `echo $$ > pid; while :; do sleep 0.05; done`
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIP: no bash here")
	}
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"AZCONC=" + azconc, "AZCONC_LOCK=locks/ci", "AZCONC_SCRIPT=" + work, "AZCONC_WAIT=10s"}
	for _, r := range []runner{
		{"GitHub's action", block(t, "actions/lock/action.yml", "run"), own},
		{"Azure's template", strings.ReplaceAll(block(t, "docs/azure-pipelines/lock.yml", "inlineScript"), `--account-name "$AZCONC_ACCOUNT" --auth-mode login`, ""), own},
		{"no exec", `azconc lock run locks/ci --end-with-parent --kill-after 2s -- sh -c '` + work + `'; echo after`, nil},
		{"no exec, and the command ignores signals", `azconc lock run locks/ci --end-with-parent --kill-after 2s -- sh -c 'trap "" INT TERM; ` + work + `'; echo after`, nil},
	} {
		for _, signals := range [][]syscall.Signal{{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL}, {syscall.SIGKILL}} {
			execs, killed := strings.Contains(r.script, "exec "), signals[0] == syscall.SIGKILL
			if execs && killed { // then azconc itself is killed: the watchdog's tests
				continue
			}
			name := r.name
			if killed {
				name += ", killed"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := onMemory(t)
				if err := os.WriteFile(filepath.Join(s.dir, "step.sh"), []byte(r.script), 0o600); err != nil {
					t.Fatal(err)
				}
				step := stepOf(bash, s, r.env)
				if err := step.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = syscall.Kill(-step.Process.Pid, syscall.SIGKILL) }() // what should not be there any more
				pids := s.eventually("pid", 1)
				ended := make(chan struct{})
				go func() { _ = step.Wait(); close(ended) }()
				for _, signal := range signals {
					_ = step.Process.Signal(signal)
					select { // the runner waits for 7.5 s and 2.5 s
					case <-ended:
					case <-time.After(time.Second):
					}
				}
				<-ended
				if code, _, said := s.run("lock", "run", "locks/ci", "--wait", "90s", "--", "true"); code != 0 { // a killed azconc leaves its lease to end
					t.Errorf("the lock is not free: %d %s", code, said)
				}
				s.allGone(pids)
			})
		}
	}
}

// stepOf returns a step as a runner starts it: without a terminal, and in a group of its own.
func stepOf(bash string, s shell, env []string) *exec.Cmd {
	step := exec.Command(bash, "--noprofile", "--norc", "-eo", "pipefail", "step.sh")
	step.Dir, step.Env = s.dir, slices.Concat(s.env, env)
	step.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	step.WaitDelay = 20 * time.Second // for what outlives it and has its streams
	return step
}

// TestACommandGoesOnWithoutItsParentByDefault: a command that is started in the background outlives its shell.
func TestACommandGoesOnWithoutItsParentByDefault(t *testing.T) {
	t.Parallel()
	s := onMemory(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIP: no bash here")
	}
	if err := os.WriteFile(filepath.Join(s.dir, "step.sh"), []byte(`azconc lock run locks/ci -- sh -c 'until [ -e gone ]; do sleep 0.05; done; sleep 1.2; echo done > end' & until [ "$(azconc lock show locks/ci -o json | tr -d ' ' | grep -c '"held":true')" = 1 ]; do sleep 0.1; done`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stepOf(bash, s, nil).Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "gone"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.eventually("end", 1)
}
