package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// The azurerm backend has no setting for an endpoint: it goes to https://ACCOUNT.blob.core.windows.net. So these tests are that
// host: a proxy on the loopback interface (HTTPS_PROXY) connects it to the service of the test, which has a certificate that the
// client trusts (SSL_CERT_FILE). The backend is the real one, and its requests are those that it sends to Azure.
const azurermBlock = "terraform {\n  backend \"azurerm\" {\n    storage_account_name = \"" + aztest.Account + "\"\n    container_name = \"tfstate\"\n    key = \"prod\"\n  }\n}\n"

const azurermHost = aztest.Account + ".blob.core.windows.net"

// azurerm returns the variables with which the azurerm backend reaches a service, and counts its connections.
func azurerm(t *testing.T, service http.Handler) (env []string, connections *atomic.Int64) {
	t.Helper()
	certificate, file := certify(t, azurermHost)
	server := httptest.NewUnstartedServer(service)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	connections = new(atomic.Int64)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != azurermHost+":443" {
			t.Errorf("the client asks for %s %s", r.Method, r.Host)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		connections.Add(1)
		connect(w, server.Listener.Addr().String())
	}))
	t.Cleanup(proxy.Close)
	return []string{"HTTPS_PROXY=" + proxy.URL, "https_proxy=", "NO_PROXY=", "no_proxy=", "SSL_CERT_FILE=" + file, "SSL_CERT_DIR=" + t.TempDir(),
		"ARM_ACCESS_KEY=" + aztest.Key}, connections
}

// connect answers a CONNECT, and carries bytes until one of the ends closes.
func connect(w http.ResponseWriter, address string) {
	far, err := net.Dial("tcp", address)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer far.Close()
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

// certify returns a certificate for a host, and the file with which a client trusts it.
func certify(t *testing.T, host string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// hosted is a service whose account is in the path, for a client that has it in the host.
func hosted(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/" + aztest.Account + r.URL.Path
		if r.URL.RawPath != "" {
			r.URL.RawPath = "/" + aztest.Account + r.URL.RawPath
		}
		service.ServeHTTP(w, r)
	})
}

// both is one state, and two working directories on it: one with an azurerm block, and one of azconc tf run.
type both struct {
	infra              // with the azurerm block
	own         *infra // with the http block, on the same state
	direct      []string
	connections *atomic.Int64
}

func newBoth(t *testing.T) *both {
	t.Helper()
	b := &both{infra: *newInfra(t, azurermBlock)}
	b.direct, b.connections = azurerm(t, hosted(b.service.BlobHandler()))
	own := b.infra
	own.dir = t.TempDir()
	b.own = &own
	text, err := os.ReadFile(filepath.Join(b.dir, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	b.own.write("main.tf", strings.Replace(string(text), azurermBlock, httpBlock, 1))
	return b
}

// plainly returns tofu in the directory with the azurerm block, without azconc.
func (b *both) plainly(args ...string) (*exec.Cmd, *transcript) {
	b.t.Helper()
	cmd, said := exec.CommandContext(b.t.Context(), b.tofu, args...), &transcript{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = b.dir, append(b.env[:len(b.env):len(b.env)], b.direct...), said, said, 10*time.Second
	return cmd, said
}

// azurerm runs tofu there, and requires an exit code.
func (b *both) azurerm(want int, args ...string) string {
	b.t.Helper()
	cmd, said := b.plainly(args...)
	if err := cmd.Run(); codeOf(err) != want {
		b.t.Fatalf("tofu %s with azurerm: %v, want %d\n%s", strings.Join(args, " "), err, want, said)
	}
	return said.String()
}

// holding starts an apply with the azurerm backend that holds its lock until the file go is there.
func (b *both) holding(args ...string) (*exec.Cmd, *transcript) {
	b.t.Helper()
	cmd, said := b.plainly(append([]string{"apply", "-auto-approve", slowly}, args...)...)
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = cmd.Process.Kill() })
	b.eventually("begun", 1)
	return cmd, said
}

// noChange is in a plan for a state that is as the configuration says.
const noChange = "No changes."

// The way there and back, in one working directory: the state stays in its blob, neither side needs another init, and .terraform of
// azurerm is the same file after a run of azconc.
func TestOpenTofuGoesFromAzurermToAzconcAndBack(t *testing.T) {
	for name, service := range map[string]func(*testing.T, *infra) http.Handler{
		"in memory": func(_ *testing.T, i *infra) http.Handler { return hosted(i.service.BlobHandler()) },
		"azurite": func(t *testing.T, i *infra) http.Handler { // it verifies the signatures
			server := startAzurite(t)
			i.env = append(i.env, "AZURE_STORAGE_CONNECTION_STRING="+connectionTo(server.BlobURL(), server.TableURL()))
			to, err := url.Parse(server.BlobURL())
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
		if code, out, said := b.run("tf", "unlock", "tfstate/prod", "--yes"); code != 0 || b.locked() != "" {
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

	held, said = b.own.begin("begun", "apply", "-auto-approve", "-var=v=four", `-var=pause=trap "" INT; echo begun >begun; while [ ! -e go ]; do sleep 0.1; done`)
	b.azurerm(0, "force-unlock", "-force", b.lock().ID)
	b.azurerm(0, "apply", "-auto-approve", "-var=v=five")
	b.saysEventually(said, "the command is asked to stop")
	b.own.write("go", "")
	err = held.Wait()
	if _, left := os.Stat(filepath.Join(b.own.dir, "errored.tfstate")); codeOf(err) != 76 || left != nil || b.stored() != "five" || b.locked() != "" {
		t.Errorf("azconc: %v, errored.tfstate: %v, stored %q, %s", err, left, b.stored(), said)
	}
}

// seenLock is what azconc tf show says of a lock.
type seenLock struct {
	ID       string
	Locked   bool
	Infinite bool
}

func (b *both) lock() (l seenLock) {
	b.t.Helper()
	code, out, said := b.run("tf", "show", "tfstate/prod", "-o", "json")
	if err := json.Unmarshal([]byte(out), &l); code != 0 || err != nil || !l.Locked {
		b.t.Fatalf("exit %d, %s %s", code, out, said)
	}
	return l
}

func (b *both) remove(name string) {
	b.t.Helper()
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

func (i *infra) text(name string) string {
	i.t.Helper()
	text, err := os.ReadFile(filepath.Join(i.dir, name))
	if err != nil {
		i.t.Fatal(err)
	}
	return string(text)
}
