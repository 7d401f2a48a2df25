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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// The azurerm backend goes to https://ACCOUNT.blob.core.windows.net, and has no setting for another host of the account. So these
// tests are that host: a proxy on the loopback interface (HTTPS_PROXY) connects it to the service of the test, which has a certificate that the
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
