package doctor

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
)

// certified returns a certificate for a host that ends at a time, signed by itself.
func certified(t *testing.T, host string, end time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: end.Add(-time.Hour), NotAfter: end}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// TestServersThatTheSchemeDoesNotFit connects to servers on this machine, without a stand-in for the network.
func TestServersThatTheSchemeDoesNotFit(t *testing.T) {
	secured := func(certificate tls.Certificate) *httptest.Server {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // its handshakes fail
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		s.StartTLS()
		return s
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		server      *httptest.Server
		scheme      string
		found, cure string
	}{
		"another host":          {secured(certified(t, "login.example", time.Now().Add(time.Hour))), "https", "the certificate is for another host", "wrong DNS record"},
		"expired":               {secured(certified(t, "localhost", time.Now().Add(-time.Hour))), "https", "has expired or is not yet valid", "clock of this machine"},
		"unknown authority":     {secured(certified(t, "localhost", time.Now().Add(time.Hour))), "https", "unknown authority", "trusted by this machine"},
		"plain HTTP on TLS":     {httptest.NewServer(http.NotFoundHandler()), "https", "does not speak TLS", "needs http://"},
		"TLS on plain HTTP":     {secured(certified(t, "localhost", time.Now().Add(time.Hour))), "http", "speaks TLS, and the endpoint is http://", "needs https://"},
		"nothing that listens":  {gone, "https", "connection refused", "is the address right"},
		"no service of storage": {httptest.NewServer(http.NotFoundHandler()), "http", "did not come from the service", "sign in"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(c.server.Close)
			_, address, _ := strings.Cut(c.server.URL, "://")
			endpoint := c.scheme + "://localhost" + address[strings.LastIndex(address, ":"):] + "/acct"
			streams, _, out, _ := cli.TestStreams()
			f := cli.NewFactory(streams, cli.Env{})
			defer f.Close()
			cmd := newCmd(f, machine{})
			cmd.PersistentPreRunE = f.Begin
			f.AddFlags(cmd)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs([]string{"--account-name", "acct", "--account-key", aztest.Key, "--blob-endpoint", endpoint})
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.found) {
				t.Errorf("the cause is %v, want %q", err, c.found)
			}
			if said := out.Bytes(); !bytes.Contains(said, []byte(c.cure)) || !bytes.Contains(said, []byte("no endpoint is given")) {
				t.Errorf("%q is not in\n%s", c.cure, said)
			}
		})
	}
}
