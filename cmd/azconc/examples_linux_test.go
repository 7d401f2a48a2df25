//go:build !race

// Some two hundred processes, each of which takes ten times as long with the race detector: scripts/test runs this file without it.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/root"
	"github.com/azconc/azconc/pkg/aztest"
)

// notRun are the examples that this test leaves out, by how they begin, and why.
var notRun = []struct{ begins, why string }{
	{"azconc dev up", "runs until it is interrupted: dev_test.go, TestANewcomerCanFollowTheReadmes"},
	{"azconc dev run --engine azurite", "starts Azurite: dev_test.go"},
	{"azconc demo --engine azurite", "starts Azurite: demo_test.go"},
	{"azconc tf run", "needs terraform or tofu: opentofu_linux_test.go, tf_linux_test.go"},
	{"azconc bench", "takes minutes: the tests of its package"},
	{"azconc lock hold jobs/maintenance --for 1h", "holds for an hour: testdata/lock.txtar"},
}

// before are the lines that make what an example is about, by a part of it. All that apply are run, in this order.
var before = []struct{ of, lines string }{
	{" blob append logs/events", "azconc blob append logs/events --file event.json --record --create"},
	{" blob records logs/app", "azconc blob append logs/app --roll --record --file event.json"},
	{" blob block commit", "echo 1 | azconc blob block put jobs/big --id part-0001 --file -; echo 2 | azconc blob block put jobs/big --id part-0002 --file -"},
	{" blob block list", "echo 1 | azconc blob block put jobs/big --id part-0001 --file -"},
	{" blob page clear", "azconc blob page create jobs/disk --size 1048576"},
	{" blob page put", "azconc blob page create jobs/disk --size 1048576"},
	{" blob page ranges", "azconc blob page create jobs/disk --size 1048576"},
	{" counter add", "azconc counter create jobs/visits"},
	{" counter get", "azconc counter create jobs/visits"},
	{" counter delete", "azconc counter create jobs/visits"},
	{" lock show", "azconc lock run jobs/nightly -- true"},
	{" lock break", "azconc lock run jobs/nightly -- true"},
	{" once show", "azconc once run jobs/deploy-42 -- true"},
	{" once forget", "azconc once run jobs/deploy-42 -- true"},
	{" once list", "azconc once run jobs/deploy-42 -- true"},
	{" tags update", "azconc blob tags set jobs/state.json state=ready prio=3"},
	{"--if-tags", "azconc blob tags set jobs/state.json state=ready"},
	{"table delete-entity", "ETAG=$(azconc table get jobs/eu/17 --query etag -o tsv)"},
	{`--if-match "$ETAG"`, "ETAG=$(azconc table get jobs/eu/17 --query etag -o tsv)"},
	{`"$RECEIPT"`, "RECEIPT=$(azconc queue receive orders --query 'messages[0].pop_receipt' -o tsv)"},
	{"queue acl set orders --file", "azconc queue acl show orders >settings.json"},
	{"queue properties set --file", "azconc queue properties show >settings.json"},
	{"container acl set jobs --file", "azconc container acl show jobs >settings.json"},
	{"group show", "azconc group run jobs/ingest --parts 2 -- ./worker & until [ -e handled ]; do sleep 0.02; done; kill -TERM $!; wait $! || true"},
	{"orders-$AZCONC_PART", "for n in 0 1 2; do azconc queue create orders-$n; azconc queue send orders-$n --file order.json; done"},
	{"--claim-check bodies", "azconc queue send orders --file order.json"},
}

// exampleExits are the exit codes of the examples that do not end with 0, by a part of each, and why.
var exampleExits = []struct {
	of   string
	code int
}{
	{"0x8DE0A1B2C3D4E5F", 4}, // an ETag that the blob does not have
	{"0x8DE4A1B2C3D4E5F", 4},
	{"--if-unmodified-since 2026-01-31", 4},         // it has changed since
	{"abort-copy", 4},                               // no such copy is pending
	{"orders 1f3c…", 9},                             // no message has the id
	{"file lease break jobs/report.csv --stale", 9}, // nobody holds it
	{"0x8DE4A1B2C3D4000", 4},
}

// runsOn are the examples that run until they are interrupted.
var runsOn = regexp.MustCompile(`^azconc (queue consume orders --exec \S+( --inbox \S+)?|group run .*)$`)

var leaseOf = regexp.MustCompile(`azconc (\w+) lease (?:change|release|renew) (\S+) --lease-id \$LEASE`)

// TestTheExamplesOfTheHelpRun runs each example of each help, and those in the sessions that the README of the command line shows, as
// they are printed, on an account of its own in memory that has what they name. The other lines of the README run in
// TestANewcomerCanFollowTheReadmes.
func TestTheExamplesOfTheHelpRun(t *testing.T) {
	t.Parallel()
	ran := 0
	left, had := map[string]bool{}, map[string]bool{}
	run := func(name, line string) {
		for _, not := range notRun {
			if strings.HasPrefix(line, not.begins) {
				left[not.begins] = true
				return
			}
		}
		ran++
		if testing.Short() && (had[name] || ran%8 != 0) {
			return // an example of one command in eight or so stands for the others
		}
		had[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runExample(t, line)
		})
	}
	all := slices.Clone(root.Documented().Commands())
	for i := 0; i < len(all); i++ {
		for line := range strings.Lines(all[i].Example) {
			if line = strings.TrimSpace(line); line != "" {
				run(all[i].CommandPath(), line)
			}
		}
		all = append(all, all[i].Commands()...)
	}
	for line := range strings.Lines(root.Documented().Example) {
		run("azconc", strings.TrimSpace(line))
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(string(readme), -1) {
		for line := range strings.Lines(session[1]) {
			if line, typed := strings.CutPrefix(strings.TrimSpace(line), "$ azconc "); typed {
				run("README", "azconc "+line)
			}
		}
	}
	if ran < 180 {
		t.Errorf("%d examples: the walk misses some", ran)
	}
	for _, not := range notRun {
		if !left[not.begins] {
			t.Errorf("no example begins with %q: remove the exception", not.begins)
		}
	}
}

func runExample(t *testing.T, line string) {
	service := aztest.New(nil)
	connection := connected(t, service)
	dir := exampleFolder(t)
	script := "set -u\n"
	for _, b := range before {
		if strings.Contains(line, b.of) {
			script += b.lines + " || exit 99\n"
		}
	}
	if m := leaseOf.FindStringSubmatch(line); m != nil {
		script += fmt.Sprintf("LEASE=$(azconc %s lease acquire %s) || exit 99\n", m[1], m[2])
	}
	if strings.Contains(line, "coproc") {
		line += "; test $FENCE -gt 0"
	}
	if runsOn.MatchString(line) {
		line += " & until [ -e handled ]; do sleep 0.02; done; kill -TERM $!; wait $!"
	}
	prepare(t, service, connection, script+line)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script+line)
	shell.Dir, shell.WaitDelay = dir, 5*time.Second
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	shell.Env = append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+connection, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	want := 0
	for _, e := range exampleExits {
		if strings.Contains(line, e.of) {
			want = e.code
		}
	}
	if got := codeOf(err); got != want {
		t.Errorf("%s\nexit %d, want %d: %s", line, got, want, out)
	}
}

// exampleFolder has the user's own files and programs, which the examples name.
func exampleFolder(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range strings.Fields("nightly.sh deploy deploy.sh encode.sh scheduler report.sh charge recount.sh read.sh handle worker code generate") {
		write(t, dir, name, "#!/bin/sh\necho done\n>handled\n", 0o755)
	}
	write(t, dir, "order-to-rows", "#!/bin/sh\n>handled\necho '{\"op\": \"upsert\", \"row\": \"17\", \"entity\": {\"n\": 1}}'\n", 0o755)
	for _, name := range strings.Fields("new.json state.json event.json order.json entity.json") {
		write(t, dir, name, `{"n": 1}`, 0o600)
	}
	for _, name := range strings.Fields("part1 extra.txt q3.csv") {
		write(t, dir, name, "text\n", 0o600)
	}
	write(t, dir, "page", strings.Repeat("x", 512), 0o600)
	write(t, dir, "move.jsonl", `{"op": "upsert", "row": "18", "entity": {"n": 1}}`+"\n", 0o600)
	write(t, dir, "go.mod", "module example.com/shop\n\ngo 1.26\n", 0o600)
	write(t, dir, "shop.go", "package shop\n", 0o600)
	return dir
}

func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// there makes what examples name. An example that makes one of these itself gets none of what follows.
const there = `container create jobs
container create logs
container create backup
container create site
container create locks
container create tfstate
container create bodies
blob put jobs/state.json --file -
blob put jobs/config.yaml --file -
blob put jobs/ticket-7 --file -
blob put jobs/2025.log --file -
blob put backup/state.json --file -
blob put backup/src.tar --file -
blob put site/app.js --file -
blob put tfstate/prod.tfstate --file -
table create jobs
table create orders
table create azconcmarkers
table insert jobs/eu/17 --set n=0
queue create orders
queue create orders-poison
queue send orders --file -
share create reports
share create jobs
file put reports/q3.csv --file -
file put reports/q3.xlsx --file -
file put reports/state.json --file -
file put reports/list.txt --file -
file put jobs/report.csv --file -
`

// prepare makes, in this process, what a script names and does not make itself.
func prepare(t *testing.T, service *aztest.Service, connection, script string) {
	t.Helper()
	for command := range strings.Lines(there) {
		command = strings.TrimSpace(command)
		made, _, _ := strings.Cut(command, " --")
		if strings.Contains(script, made) {
			break // and nothing that is in it
		}
		if words := strings.Fields(made); !strings.Contains(script, words[len(words)-1]) {
			continue
		}
		s, in, _, stderr := cli.TestStreams()
		in.WriteString(`{"n": 1}`)
		if code := root.Run(t.Context(), strings.Fields(command), s, cli.Env{"AZURE_STORAGE_CONNECTION_STRING=" + connection}); code != 0 {
			t.Fatalf("azconc %s: exit %d, %s", command, code, stderr)
		}
	}
	if strings.Contains(script, "reports/2026") {
		folder := service.Share("reports").NewDirectoryClient("2026")
		if _, err := folder.Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := folder.NewFileClient("q3.xlsx").Create(t.Context(), 0, nil); err != nil {
			t.Fatal(err)
		}
	}
}
