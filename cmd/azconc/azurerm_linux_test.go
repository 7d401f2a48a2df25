package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// noChange is in a plan for a state that is as the configuration says.
const noChange = "No changes."

// The way there and back, in one working directory: the state stays in its blob, neither side needs another init, and .terraform of
// azurerm is the same file after a run of azconc.
func TestOpenTofuGoesFromAzurermToAzconcAndBack(t *testing.T) {
	for name, service := range map[string]func(*testing.T, *infra) http.Handler{
		"in memory": func(_ *testing.T, i *infra) http.Handler { return hosted(i.service.BlobHandler()) },
		"azurite": func(t *testing.T, i *infra) http.Handler { // it verifies the signatures
			account := azuritetest.Account(t)
			i.env = append(i.env, "AZURE_STORAGE_CONNECTION_STRING="+account.ConnectionString())
			to, err := url.Parse(account.BlobURL)
			if err != nil {
				t.Fatal(err)
			}
			return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", to.Host, r.In.Host
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &both{infra: *newInfra(t, azurermBlock)}
			b.direct, b.connections = azurerm(t, service(t, &b.infra))
			if name == "azurite" {
				if code, _, said := b.run("container", "create", "tfstate"); code != 0 {
					t.Fatal(said)
				}
			}
			read := func() string {
				t.Helper()
				code, state, said := b.run("blob", "get", "tfstate/prod")
				if code != 0 {
					t.Fatal(said)
				}
				return state
			}
			lineage := regexp.MustCompile(`"lineage":"[^"]+"`)
			b.azurerm(0, "init", "-input=false")
			b.azurerm(0, "apply", "-auto-approve", "-var=v=one")
			first, saved := read(), b.text(".terraform/terraform.tfstate")
			if b.connections.Load() == 0 || !strings.Contains(saved, `"azurerm"`) || !strings.Contains(first, `"value":"one"`) {
				t.Fatalf("%d connections, %s, %s", b.connections.Load(), saved, first)
			}
			hint := regexp.MustCompile(`echo '(.*)' >(azconc_override\.tf\.json); export TF_DATA_DIR=(\.terraform-azconc)`).FindStringSubmatch(b.tf(2, "plan"))
			if hint == nil {
				t.Fatal("no way out")
			}
			azurermEnv, ours := b.env, append(b.env[:len(b.env):len(b.env)], "TF_DATA_DIR="+hint[3])
			there := func() { b.env = ours; b.write(hint[2], hint[1]) }
			back := func() {
				b.env = azurermEnv
				if err := os.Remove(filepath.Join(b.dir, hint[2])); err != nil {
					t.Fatal(err)
				}
			}
			there()
			before := b.connections.Load()
			b.tf(0, "init", "-input=false")
			if out := b.tf(0, "plan", "-var=v=one"); !strings.Contains(out, noChange) || read() != first {
				t.Errorf("azconc does not find what azurerm has stored: %s", out)
			}
			b.tf(0, "apply", "-auto-approve", "-var=v=two")
			if b.connections.Load() != before {
				t.Error("a run of azconc has used the azurerm backend")
			}
			back()
			if out := b.azurerm(0, "plan", "-var=v=two"); !strings.Contains(out, noChange) {
				t.Errorf("azurerm does not find what azconc has stored: %s", out)
			}
			b.azurerm(0, "apply", "-auto-approve", "-var=v=three")
			there()
			if out := b.tf(0, "plan", "-var=v=three"); !strings.Contains(out, noChange) {
				t.Errorf("the second time: %s", out)
			}
			b.tf(0, "apply", "-auto-approve", "-var=v=four")
			back()
			b.azurerm(0, "plan", "-var=v=four", "-detailed-exitcode")
			if last := read(); lineage.FindString(last) == "" || lineage.FindString(last) != lineage.FindString(first) {
				t.Errorf("another lineage: %s, %s", first, last)
			}
			if b.locked() != "" || b.text(".terraform/terraform.tfstate") != saved {
				t.Errorf("locked by %q, .terraform: %s", b.locked(), b.text(".terraform/terraform.tfstate"))
			}
			b.azurerm(0, "destroy", "-auto-approve")
		})
	}
}

// A workspace of azurerm has a blob of its own, which azconc names before it would use that of another workspace.
func TestOpenTofuGoesFromAWorkspaceOfAzurermAndBack(t *testing.T) {
	b := &both{infra: *newInfra(t, azurermBlock)}
	b.direct, b.connections = azurerm(t, hosted(b.service.BlobHandler()))
	b.azurerm(0, "init", "-input=false")
	b.azurerm(0, "workspace", "new", "eu")
	b.azurerm(0, "apply", "-auto-approve", "-var=v=one")

	usual := b.env
	b.write("azconc_override.tf.json", `{"terraform":{"backend":{"http":{}}}}`)
	b.env = append(b.env[:len(b.env):len(b.env)], "TF_DATA_DIR=.terraform-azconc")
	if out := b.tf(2, "init"); !strings.Contains(out, "give tfstate/prodenv:eu") {
		t.Fatal(out)
	}
	eu := func(args ...string) string {
		t.Helper()
		code, out, said := b.run(append([]string{"tf", "run", "tfstate/prodenv:eu", "--", b.tofu}, args...)...)
		if code != 0 {
			t.Fatalf("exit %d, %s %s", code, out, said)
		}
		return out
	}
	eu("init", "-input=false")
	if out := eu("plan", "-var=v=one"); !strings.Contains(out, noChange) {
		t.Errorf("azconc does not find what azurerm has stored: %s", out)
	}
	eu("apply", "-auto-approve", "-var=v=two")
	b.env = usual
	b.remove("azconc_override.tf.json")
	if out := b.azurerm(0, "plan", "-var=v=two"); !strings.Contains(out, noChange) {
		t.Errorf("azurerm does not find what azconc has stored: %s", out)
	}
}

// Two working directories on one state, one with azurerm and one under azconc tf run: each sees the lock of the other, says who holds
// it, and waits for it.
func TestOpenTofuWithAzurermAndAzconcLockEachOtherOut(t *testing.T) {
	b := newBoth(t)
	b.azurerm(0, "init", "-input=false")
	b.azurerm(0, "apply", "-auto-approve")
	b.own.tf(0, "init", "-input=false")

	held, said := b.holding("-var=v=two")
	who := b.locked()
	if out := b.own.tf(1, "apply", "-auto-approve", "-var=v=three"); who == "" || !strings.Contains(out, "Who:       "+who) || !strings.Contains(out, "OperationTypeApply") {
		t.Errorf("locked by %q with azurerm, azconc says: %s", who, out)
	}
	waiting, waited := b.command("tf", "run", "tfstate/prod", "--", b.tofu, "apply", "-auto-approve", "-lock-timeout=2m", "-var=v=three")
	waiting.Dir, waiting.Stdout = b.own.dir, waited
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	b.write("go", "")
	if err := held.Wait(); err != nil {
		t.Errorf("azurerm: %v, %s", err, said)
	}
	if err := waiting.Wait(); err != nil || b.stored() != "three" || b.locked() != "" {
		t.Errorf("azconc has waited: %v, stored %q, %s", err, b.stored(), waited)
	}

	held, said = b.own.begin("begun", "apply", "-auto-approve", "-var=v=four", slowly)
	who = b.locked()
	if out := b.azurerm(1, "apply", "-auto-approve", "-var=v=five"); who == "" || !strings.Contains(out, "Who:       "+who) || !strings.Contains(out, "state blob is already locked") {
		t.Errorf("locked by %q under azconc, azurerm says: %s", who, out)
	}
	later, laterSaid := b.plainly("apply", "-auto-approve", "-lock-timeout=2m", "-var=v=five")
	if err := later.Start(); err != nil {
		t.Fatal(err)
	}
	b.own.write("go", "")
	if err := held.Wait(); err != nil {
		t.Errorf("azconc: %v, %s", err, said)
	}
	if err := later.Wait(); err != nil || b.stored() != "five" || b.locked() != "" {
		t.Errorf("azurerm has waited: %v, stored %q, %s", err, b.stored(), laterSaid)
	}
}

// KILL for a run with azurerm leaves a lock that never ends. azconc shows and releases it; without a description, for which force-unlock
// fails, it breaks it. KILL for azconc leaves a lock that azurerm waits out.
func TestOpenTofuWithAzurermKilled(t *testing.T) {
	b := newBoth(t)
	b.azurerm(0, "init", "-input=false")
	b.azurerm(0, "apply", "-auto-approve")
	b.own.tf(0, "init", "-input=false")
	for name, described := range map[string]bool{"described": true, "not described": false} {
		held, _ := b.holding("-var=v=two")
		_ = held.Process.Kill()
		_ = held.Wait()
		b.remove("begun")
		id := b.lock().ID
		if !b.lock().Infinite || id == "" {
			t.Fatalf("%s: %+v", name, b.lock())
		}
		if !described { // what a run leaves that dies between the removal of its description and the release
			if code, _, said := b.run("blob", "metadata", "set", "tfstate/prod", "team=ops", "--lease-id", id); code != 0 {
				t.Fatal(said)
			}
			if out := b.azurerm(1, "force-unlock", "-force", id); !strings.Contains(out, `"terraformlockid" was empty`) {
				t.Error(out)
			}
		}
		b.azurerm(1, "apply", "-auto-approve", "-var=v=three")
		b.own.tf(1, "apply", "-auto-approve", "-var=v=three")
		code, out, said := b.run("tf", "unlock", "tfstate/prod", "--yes")
		if !described { // nobody knows the ID, and the refusal says what to do
			if code != 1 || !strings.Contains(said, "azconc blob lease break tfstate/prod") {
				t.Errorf("%s: exit %d, %s %s", name, code, out, said)
			}
			code, out, said = b.run("blob", "lease", "break", "tfstate/prod")
		}
		if code != 0 || b.locked() != "" {
			t.Errorf("%s: exit %d, %s %s", name, code, out, said)
		}
		b.azurerm(0, "apply", "-auto-approve", "-var=v="+map[bool]string{true: "four", false: "five"}[described])
	}

	cmd, _ := b.own.begin("begun", "apply", "-auto-approve", "-var=v=six", slowly)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = cmd.Wait()
	if out := b.azurerm(0, "apply", "-auto-approve", "-lock-timeout=60s", "-var=v=seven"); time.Since(killed) > time.Minute || b.stored() != "seven" {
		t.Errorf("after %v, stored %q, %s", time.Since(killed), b.stored(), out)
	}
}

// A lock that is released under a live run: with azurerm the run cannot overwrite, because its lease is gone; under azconc, the run
// learns it when azurerm's force-unlock has released its lock.
func TestOpenTofuWithAzurermUnlocksAndIsUnlocked(t *testing.T) {
	b := newBoth(t)
	b.azurerm(0, "init", "-input=false")
	b.azurerm(0, "apply", "-auto-approve")
	b.own.tf(0, "init", "-input=false")

	held, said := b.holding("-var=v=two")
	if code, _, why := b.run("tf", "unlock", "tfstate/prod", "--yes"); code != 0 {
		t.Fatal(why)
	}
	b.own.tf(0, "apply", "-auto-approve", "-var=v=three")
	b.write("go", "")
	err := held.Wait()
	if _, left := os.Stat(filepath.Join(b.dir, "errored.tfstate")); codeOf(err) != 1 || left != nil || b.stored() != "three" || b.locked() != "" {
		t.Errorf("azurerm: %v, errored.tfstate: %v, stored %q, %s", err, left, b.stored(), said)
	}

	held, said = b.own.begin("begun", "apply", "-auto-approve", "-var=v=four", `-var=pause=trap "" INT; echo begun >begun; while [ -e begun -a ! -e go ]; do sleep 0.1; done`)
	b.azurerm(0, "force-unlock", "-force", b.lock().ID)
	b.azurerm(0, "apply", "-auto-approve", "-var=v=five")
	b.saysEventually(said, "the command is asked to stop")
	b.own.write("go", "")
	err = held.Wait()
	if _, left := os.Stat(filepath.Join(b.own.dir, "errored.tfstate")); codeOf(err) != 76 || left != nil || b.stored() != "five" || b.locked() != "" {
		t.Errorf("azconc: %v, errored.tfstate: %v, stored %q, %s", err, left, b.stored(), said)
	}
}
