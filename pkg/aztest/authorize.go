package aztest

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/auth"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
	"github.com/azconc/azconc/pkg/aztest/internal/tableservice"
)

// answer authorizes a request and carries it out. It is called with mu held.
func (s *Service) answer(hr *http.Request, r *storage.Request) *storage.Answer {
	if r.Account != s.o.Account {
		return storage.Fail(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
	}
	if bad := s.authorize(hr, r); bad != nil {
		return bad
	}
	if bad := s.verifySource(hr, r); bad != nil {
		return bad
	}
	if beyond(r) {
		return storage.NotImplemented()
	}
	a := s.services[serviceAt(hr)].Route(r)
	if a.Status == http.StatusOK && (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Query.Get("sig") != "" && r.Query.Get("comp") == "" {
		for _, override := range auth.Overrides {
			a.Set(override.Header, r.Query.Get(override.Parameter))
		}
	}
	return a
}

// authorize returns why a request is refused, or nil.
func (s *Service) authorize(hr *http.Request, r *storage.Request) *storage.Answer {
	switch {
	case s.o.Anonymous:
		return nil
	case s.o.VerifySignatures:
		grant, denial := s.authority.Check(authRequest(hr, r), resources{s})
		if denial != nil {
			return refusal(serviceAt(hr), denial)
		}
		if grant != nil && serviceAt(hr) == storage.Table {
			r.Permit = func(operation *storage.Request) *storage.Answer { return permit(grant, operation) }
		}
	case r.Header.Get("Authorization") == "" && r.Query.Get("sig") == "":
		return storage.Fail(http.StatusUnauthorized, "NoAuthenticationInformation", "Server failed to authenticate the request.")
	}
	return nil
}

// permit refuses an operation of a transaction that a SAS does not permit.
func permit(grant *auth.Grant, operation *storage.Request) *storage.Answer {
	op, resource := tableservice.Operation(operation.Method, operation.Container, operation.Query, operation.Header)
	table, _, _ := strings.Cut(resource, "/")
	if d := grant.Check(&auth.Request{HTTP: &http.Request{Method: operation.Method}, Service: storage.Table, Op: op, Container: table}); d != nil {
		return refusal(storage.Table, d)
	}
	return nil
}

// authRequest describes a request for its authorization.
func authRequest(hr *http.Request, r *storage.Request) *auth.Request {
	described := Describe(hr)
	out := &auth.Request{HTTP: hr, Service: serviceAt(hr), Op: described.Op, Container: r.Container, Path: r.Blob}
	if out.Service == storage.Table {
		out.Container, _, _ = strings.Cut(described.Resource, "/")
	}
	return out
}

// refusal returns a denial in the form of the service's errors. The Table service has no details.
func refusal(service string, d *auth.Denial) *storage.Answer {
	var a *storage.Answer
	switch {
	case service == storage.Table:
		a = tableservice.Fail(d.Status, d.Code, d.Message)
	case d.Detail == "":
		a = storage.Fail(d.Status, d.Code, d.Message)
	default:
		a = storage.FailInDetail(d.Status, d.Code, d.Message, d.Detail)
	}
	if d.Status == http.StatusUnauthorized {
		a.Set("WWW-Authenticate", "SharedKey")
	}
	return a
}

// resources shows the state that an authorization depends on. Its methods are called with mu held.
type resources struct{ s *Service }

func (r resources) Policies(service, container string) []byte {
	return r.s.services[service].Policies(container)
}

func (r resources) Public(container string) string { return r.s.blobs.Public(container) }

func (r resources) Exists(service, container, path string) bool {
	return service == storage.Blob && r.s.blobs.Exists(container, path)
}

// beyond reports whether a request asks for what only a real account has, and what would have another effect without it:
// keys and scopes of encryption, versions, permanent deletion, and renaming.
func beyond(r *storage.Request) bool {
	return r.Header.Get("X-Ms-Encryption-Key") != "" || r.Header.Get("X-Ms-Encryption-Scope") != "" || r.Query.Get("versionid") != "" ||
		r.Query.Get("deletetype") != "" || r.Query.Get("comp") == "rename"
}

// verifySource returns why the URL that a request copies from gives no right to read it, or nil. Copy Blob and Copy File read the
// account's own resources with the credential of the request; other operations, and a URL that is signed, with that of the URL alone. A
// source on another host or of another account is out of reach here, whatever its signature.
func (s *Service) verifySource(hr *http.Request, r *storage.Request) *storage.Answer {
	from, err := url.Parse(r.Header.Get("X-Ms-Copy-Source"))
	if err != nil || from.Path == "" || !s.o.VerifySignatures {
		return nil // there is none, the operation refuses it, or nobody looks at it
	}
	account, path, _ := strings.Cut(strings.TrimPrefix(from.Path, "/"), "/")
	if account != s.o.Account || !sameHost(from.Host, cmp.Or(hr.Host, hr.URL.Host)) {
		return storage.Fail(http.StatusNotFound, unverified, "The in-memory service copies within an account only.")
	}
	source := &auth.Request{Service: serviceAt(hr), Op: "Get Blob", HTTP: &http.Request{Method: http.MethodGet, URL: from, Header: http.Header{}, RemoteAddr: hr.RemoteAddr}}
	if source.Service == storage.File {
		source.Op = "Get File"
	}
	source.Container, source.Path, _ = strings.Cut(path, "/")
	bearer := r.Header.Get("X-Ms-Copy-Source-Authorization")
	if op := Describe(hr).Op; bearer == "" && !from.Query().Has("sig") && (op == "Copy Blob" || op == "Copy File") {
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
