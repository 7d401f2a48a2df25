package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pkg/aztest"
)

// tofuVariable names the program to test with, a tofu or a terraform. Defaults to what scripts/opentofu has built.
const tofuVariable = "AZCONC_TOFU"

func findTofu() string {
	if named := os.Getenv(tofuVariable); named != "" {
		return named
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	built := filepath.Join(cache, "azconc", "tofu", "v1.12.6", "tofu")
	if _, err := os.Stat(built); err != nil {
		return ""
	}
	return built
}

// infra is a working directory of the real OpenTofu, with a state in a service in memory.
type infra struct {
	shell
	tofu    string
	service *aztest.Service
	state   *blockblob.Client
}

// newInfra needs the real OpenTofu. Its configuration has terraform_data only, which is built in: no provider, no network.
func newInfra(t *testing.T, backend string) *infra {
	t.Helper()
	tofu := findTofu()
	if tofu == "" {
		t.Skip("SKIP: there is no OpenTofu: scripts/opentofu builds it")
	}
	t.Parallel()
	service := aztest.New(nil)
	server := httptest.NewServer(service.BlobHandler())
	t.Cleanup(server.Close)
	i := &infra{shell: newShell(t, aztest.ConnectionString(server.URL+"/"+aztest.Account)), tofu: tofu, service: service, state: service.BlockBlob("tfstate", "prod")}
	i.env = append(i.env, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE=/dev/null", "TF_PLUGIN_CACHE_DIR=", "HOME="+t.TempDir(),
		"TF_WORKSPACE=", "TF_DATA_DIR=", "TF_LOG=")
	i.write("main.tf", backend+`
variable "v" { default = "one" }
variable "pause" { default = "true" }
resource "terraform_data" "first" { input = var.v }
resource "terraform_data" "second" {
  input = terraform_data.first.output
  triggers_replace = var.v
  provisioner "local-exec" { command = var.pause }
}
output "v" { value = terraform_data.second.output }
`)
	return i
}

const httpBlock = "terraform {\n  backend \"http\" {}\n}\n"

func (i *infra) write(name, text string) {
	i.t.Helper()
	if err := os.WriteFile(filepath.Join(i.dir, name), []byte(text), 0o644); err != nil {
		i.t.Fatal(err)
	}
}

// tf runs tofu under azconc tf run, and requires an exit code.
func (i *infra) tf(want int, args ...string) (out string) {
	i.t.Helper()
	code, out, said := i.run(append([]string{"tf", "run", "tfstate/prod", "--", i.tofu}, args...)...)
	if code != want {
		i.t.Fatalf("tofu %s: exit %d, want %d\n%s\n%s", strings.Join(args, " "), code, want, out, said)
	}
	return out + said
}

// stored returns the value of the output v in the blob.
func (i *infra) stored() string {
	i.t.Helper()
	r, err := i.state.DownloadStream(i.t.Context(), nil)
	if err != nil {
		i.t.Fatal(err)
	}
	var b bytes.Buffer
	_, _ = b.ReadFrom(r.Body)
	var s struct {
		Outputs map[string]struct{ Value string }
	}
	if err := json.Unmarshal(b.Bytes(), &s); err != nil && b.Len() > 0 {
		i.t.Fatalf("the state is torn: %q", b.String())
	}
	return s.Outputs["v"].Value
}

// locked returns who holds the state, "" if nobody does.
func (i *infra) locked() string {
	i.t.Helper()
	code, out, said := i.run("tf", "show", "tfstate/prod", "-o", "json")
	var v struct {
		Locked bool
		Who    string
	}
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil {
		i.t.Fatalf("exit %d, %s %s", code, out, said)
	}
	if v.Locked {
		return v.Who
	}
	return ""
}

// begin starts tofu under azconc tf run, and waits until the file that its provisioner creates is there.
func (i *infra) begin(file string, args ...string) (*exec.Cmd, *transcript) {
	i.t.Helper()
	cmd, _ := i.command(append([]string{"tf", "run", "tfstate/prod", "--duration", "15s", "--", i.tofu}, args...)...)
	said := &transcript{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { _ = cmd.Process.Kill() })
	i.eventually(file, 1)
	return cmd, said
}

const slowly = `-var=pause=echo begun >begun; while [ -e begun -a ! -e go ]; do sleep 0.1; done`

func TestOpenTofuAppliesAndEachRunHasAnotherPort(t *testing.T) {
	i := newInfra(t, httpBlock)
	i.tf(0, "init", "-input=false")
	i.tf(0, "apply", "-auto-approve", "-input=false")
	if i.stored() != "one" || i.locked() != "" {
		t.Fatalf("stored %q, locked by %q", i.stored(), i.locked())
	}
	i.tf(0, "plan", "-input=false", "-var=v=two", "-out=plan.bin")
	i.tf(0, "apply", "-input=false", "plan.bin")
	if out := i.tf(0, "state", "list"); i.stored() != "two" || !strings.Contains(out, "terraform_data.second") {
		t.Errorf("stored %q, %s", i.stored(), out)
	}
	i.tf(0, "apply", "-auto-approve", "-lock=false", "-var=v=three")
	i.tf(0, "init", "-input=false") // again
	i.tf(0, "destroy", "-auto-approve")
	if i.stored() != "" || i.locked() != "" {
		t.Errorf("stored %q, locked by %q", i.stored(), i.locked())
	}
}

func TestOpenTofuRefusesWorkspacesAndAzconcBefore(t *testing.T) {
	i := newInfra(t, httpBlock)
	i.tf(0, "init", "-input=false")
	if out := i.tf(1, "workspace", "new", "eu"); !strings.Contains(out, "workspaces not supported") {
		t.Error(out)
	}
	i.env = append(i.env, "TF_WORKSPACE=eu")
	if out := i.tf(2, "plan"); !strings.Contains(out, "tfstate/prodenv:eu") {
		t.Error(out)
	}
}

// An azurerm block stays as it is: an override file and a data directory of its own.
func TestOpenTofuLeavesAnAzurermDirectoryAsItIs(t *testing.T) {
	i := newInfra(t, strings.Replace(httpBlock, "http", "azurerm", 1))
	out := i.tf(2, "init")
	hint := regexp.MustCompile(`echo '(.*)' >(azconc_override\.tf\.json); export TF_DATA_DIR=\.terraform-azconc`).FindStringSubmatch(out)
	if hint == nil {
		t.Fatal(out)
	}
	i.write(hint[2], hint[1])
	i.env = append(i.env, "TF_DATA_DIR=.terraform-azconc")
	i.tf(0, "init", "-input=false")
	i.tf(0, "apply", "-auto-approve")
	if _, err := os.Stat(filepath.Join(i.dir, ".terraform")); err == nil || i.stored() != "one" {
		t.Errorf(".terraform was touched, or nothing stored: %v, %q", err, i.stored())
	}
}

func TestOpenTofuTwoAtOnce(t *testing.T) {
	i := newInfra(t, httpBlock)
	i.tf(0, "init", "-input=false")
	first, said := i.begin("begun", "apply", "-auto-approve", slowly)
	out := i.tf(1, "apply", "-auto-approve", "-var=v=two")
	if who := i.locked(); who == "" || !strings.Contains(out, "Who:       "+who) || !strings.Contains(out, "Error acquiring the state lock") {
		t.Errorf("locked by %q, the second learns: %s", who, out)
	}
	waiting, waited := i.command("tf", "run", "tfstate/prod", "--", i.tofu, "apply", "-auto-approve", "-lock-timeout=2m", "-var=v=three")
	waiting.Stdout = waited
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	i.write("go", "")
	if err := first.Wait(); err != nil {
		t.Errorf("%v, %s", err, said)
	}
	if err := waiting.Wait(); err != nil || i.stored() != "three" || i.locked() != "" {
		t.Errorf("%v, stored %q, %s", err, i.stored(), waited)
	}
}

// KILL for azconc in the middle of an apply: the lock ends by itself, and what was stored before is whole.
func TestOpenTofuKilledInMidApply(t *testing.T) {
	i := newInfra(t, httpBlock)
	i.tf(0, "init", "-input=false")
	i.tf(0, "apply", "-auto-approve")
	cmd, _ := i.begin("begun", "apply", "-auto-approve", "-var=v=two", slowly)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = cmd.Wait()
	if out := i.tf(0, "apply", "-auto-approve", "-lock-timeout=60s", "-var=v=three"); time.Since(killed) > time.Minute || i.stored() != "three" {
		t.Errorf("after %v, stored %q, %s", time.Since(killed), i.stored(), out)
	}
}

// KILL for OpenTofu alone: azconc notices, and releases its lock at once.
func TestOpenTofuKilledUnderAzconc(t *testing.T) {
	i := newInfra(t, httpBlock)
	i.tf(0, "init", "-input=false")
	cmd, said := i.begin("begun", "apply", "-auto-approve", `-var=pause=echo $PPID >begun; sleep 600`)
	tofu := i.eventually("begun", 1)[0]
	if err := exec.Command("kill", "-KILL", tofu).Run(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); codeOf(err) != 137 || i.locked() != "" || !strings.Contains(said.String(), "ended without unlocking") {
		t.Errorf("%v, locked by %q, %s", err, i.locked(), said)
	}
}

// TERM makes OpenTofu store its state and unlock; TERM after INT, which runners send next, does not make it exit at once.
func TestOpenTofuIsStoppedByARunner(t *testing.T) {
	i := newInfra(t, httpBlock)
	i.tf(0, "init", "-input=false")
	cmd, said := i.begin("begun", "apply", "-auto-approve", `-var=pause=trap "" INT; echo begun >begun; while [ -e begun -a ! -e go ]; do sleep 0.1; done`)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	i.saysEventually(said, "Interrupt received")
	i.write("go", "")
	if err := cmd.Wait(); codeOf(err) != 1 || i.locked() != "" || strings.Contains(said.String(), "Two interrupts") || strings.Contains(said.String(), "without unlocking") {
		t.Errorf("%v, locked by %q, %s", err, i.locked(), said)
	}
}

// A lock that is released under a live run: it learns so, cannot overwrite, and keeps its state in errored.tfstate.
func TestOpenTofuThatHasLostItsLockCannotOverwrite(t *testing.T) {
	i := newInfra(t, httpBlock)
	i.tf(0, "init", "-input=false")
	i.tf(0, "apply", "-auto-approve")
	cmd, said := i.begin("begun", "apply", "-auto-approve", "-var=v=two", `-var=pause=trap "" INT; echo begun >begun; while [ -e begun -a ! -e go ]; do sleep 0.1; done`)
	if code, _, why := i.run("tf", "unlock", "tfstate/prod", "--yes"); code != 0 {
		t.Fatal(why)
	}
	i.write("pause-not", "")
	i.tf(0, "apply", "-auto-approve", "-var=v=three")
	i.saysEventually(said, "the command is asked to stop")
	i.write("go", "")
	err := cmd.Wait()
	if _, left := os.Stat(filepath.Join(i.dir, "errored.tfstate")); codeOf(err) != 76 || left != nil || i.stored() != "three" || i.locked() != "" {
		t.Errorf("%v, errored.tfstate: %v, stored %q, %s", err, left, i.stored(), said)
	}
}

// Force-unlock of OpenTofu names the ID, which releases that lock. Terraform's names none, and is refused.
func TestOpenTofuForceUnlock(t *testing.T) {
	i := newInfra(t, httpBlock)
	i.tf(0, "init", "-input=false")
	i.tf(0, "apply", "-auto-approve")
	const id = "6d6b9d1c-8f3e-4b1c-9d3c-0d1f6f5a2b11"
	if code, _, said := i.run("blob", "lease", "acquire", "tfstate/prod", "--duration", "infinite", "--lease-id", id); code != 0 {
		t.Fatal(said)
	}
	i.tf(1, "force-unlock", "-force", "00000000-0000-4000-8000-00000000000b")
	i.tf(1, "apply", "-auto-approve", "-var=v=two")
	if filepath.Base(i.tofu) == "terraform" {
		if out := i.tf(1, "force-unlock", "-force", id); !strings.Contains(out, "use azconc tf unlock tfstate/prod") {
			t.Error(out)
		}
		if code, _, said := i.run("blob", "lease", "release", "tfstate/prod", "--lease-id", id); code != 0 {
			t.Error(said)
		}
	} else {
		i.tf(0, "force-unlock", "-force", id)
	}
	i.tf(0, "apply", "-auto-approve", "-var=v=two")
	if i.stored() != "two" {
		t.Error(i.stored())
	}
}

// transcript is what a running command has printed so far.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// saysEventually waits until a running command has printed a text.
func (i *infra) saysEventually(said *transcript, text string) {
	i.t.Helper()
	until(i.t, "it says "+text, func() bool { return strings.Contains(said.String(), text) })
}
