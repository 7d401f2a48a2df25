package aztest

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/auth"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// verifySource returns why the URL that a request copies from gives no right to read it, or nil. Copy Blob and Copy File read the
// account's own resources with the credential of the request; other operations, and a URL that is signed, with that of the URL alone. A
// source on another host or of another account is out of reach here, whatever its signature.
func (s *Service) verifySource(hr *http.Request, r *storage.Request) *storage.Answer {
	from, err := url.Parse(r.Header.Get("X-Ms-Copy-Source"))
	if err != nil || from.Path == "" || !s.o.VerifySignatures {
		return nil // there is none, the operation refuses it, or nobody looks at it
	}
	account, path, _ := strings.Cut(strings.TrimPrefix(from.Path, "/"), "/")
	account = strings.TrimSuffix(account, auth.Secondary)
	if account != s.o.Account || !sameHost(from.Host, cmp.Or(hr.Host, hr.URL.Host)) {
		return storage.Fail(http.StatusNotFound, unverified, "The in-memory service copies within an account only.")
	}
	source := &auth.Request{Service: serviceOf(r), Op: "Get Blob", HTTP: &http.Request{Method: http.MethodGet, URL: from, Header: http.Header{}, RemoteAddr: hr.RemoteAddr}}
	if source.Service == auth.File {
		source.Op = "Get File"
	}
	source.Container, source.Path, _ = strings.Cut(path, "/")
	bearer := r.Header.Get("X-Ms-Copy-Source-Authorization")
	if op := describe(hr).Op; bearer == "" && !from.Query().Has("sig") && (op == "Copy Blob" || op == "Copy File") {
		return nil
	}
	if bearer != "" {
		source.HTTP.Header.Set("Authorization", bearer)
	}
	if _, denial := s.authority.Check(source, resources{s}); denial != nil {
		return storage.Fail(denial.Status, unverified, denial.Message)
	}
	return nil
}

const unverified = "CannotVerifyCopySource"

// sameHost reports whether two hosts with their ports are one; this machine has several names.
func sameHost(a, b string) bool {
	name := func(host string) string {
		if h, port, err := net.SplitHostPort(host); err == nil && (h == "localhost" || net.ParseIP(h).IsLoopback()) {
			return "localhost:" + port
		}
		return strings.ToLower(host)
	}
	return name(a) == name(b)
}
