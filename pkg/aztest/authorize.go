package aztest

import (
	"net/http"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/auth"
	"github.com/azconc/azconc/pkg/aztest/internal/fileservice"
	"github.com/azconc/azconc/pkg/aztest/internal/queueservice"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
	"github.com/azconc/azconc/pkg/aztest/internal/tableservice"
)

// services are the names of the services, by the hosts of requests.
var services = map[string]string{tableservice.Host: auth.Table, queueservice.Host: auth.Queue, fileservice.Host: auth.File}

// serviceOf returns the service that a request is for.
func serviceOf(r *storage.Request) string {
	if service := services[r.Host]; service != "" {
		return service
	}
	return auth.Blob
}

// answer authorizes a request and carries it out. It is called with mu held.
func (s *Service) answer(hr *http.Request, r *storage.Request) *storage.Answer {
	if r.Account != s.o.Account {
		return storage.Fail(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
	}
	if s.o.Anonymous {
		return s.route(r)
	}
	if !s.o.VerifySignatures {
		if r.Header.Get("Authorization") == "" && r.Query.Get("sig") == "" {
			return storage.Fail(http.StatusUnauthorized, "NoAuthenticationInformation", "Server failed to authenticate the request.")
		}
		return s.route(r)
	}
	if _, denial := s.authority.Check(authRequest(hr, r), resources{s}); denial != nil {
		return refusal(serviceOf(r), denial)
	}
	a := s.route(r)
	if a.Status == http.StatusOK && (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Query.Get("sig") != "" && r.Query.Get("comp") == "" {
		for _, override := range auth.Overrides {
			a.Set(override.Header, r.Query.Get(override.Parameter))
		}
	}
	return a
}

// authRequest describes a request for its authorization.
func authRequest(hr *http.Request, r *storage.Request) *auth.Request {
	described := describe(hr)
	out := &auth.Request{HTTP: hr, Service: serviceOf(r), Op: described.Op, Container: r.Container, Path: r.Blob}
	if out.Service == auth.Table {
		out.Container, _, _ = strings.Cut(described.Resource, "/")
	}
	return out
}

// refusal returns a denial in the form of the service's errors. The Table service has no details.
func refusal(service string, d *auth.Denial) *storage.Answer {
	var a *storage.Answer
	switch {
	case service == auth.Table:
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
	switch service {
	case auth.Table:
		return r.s.tables.Policies(container)
	case auth.Queue:
		return r.s.queues.Policies(container)
	case auth.File:
		return r.s.files.Policies(container)
	}
	return r.s.blobs.Policies(container)
}

func (r resources) Public(container string) string { return r.s.blobs.Public(container) }

func (r resources) Exists(service, container, path string) bool {
	return service == auth.Blob && r.s.blobs.Exists(container, path)
}
