package azcertmagic

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/aztest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newService(t testing.TB) *aztest.Service {
	t.Helper()
	s := aztest.New(nil)
	if _, err := s.Container("caddy").Create(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// certmagic finds the last two by assertion.
var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

func newStorage(t testing.TB, s *aztest.Service) *Storage {
	t.Helper()
	storage, err := New(s.Container("caddy"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return storage
}

// authority issues certificates, slowly, and counts them.
type authority struct {
	key    crypto.Signer
	root   *x509.Certificate
	issued atomic.Int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{key: key, root: &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true}}
}

var _ certmagic.Issuer = (*authority)(nil)

func (a *authority) IssuerKey() string { return "authority" }

func (a *authority) Issue(ctx context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(a.issued.Add(1)), DNSNames: request.DNSNames, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
	}, a.root, request.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}
