package queueservice

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Host is where the SDK's clients send requests to the Queue service: nothing listens there.
const Host = "127.0.0.1:10001"

// Service is the Queue service's part of the account.
type Service struct {
	*storage.Account
	named      map[string]*queueState
	properties []byte // of the service, as they were set
	serial     int    // of ids and pop receipts
}

// queueState is a queue as the service keeps it. Its messages are in the order in which they were put.
type queueState struct {
	name     string
	metadata map[string]string
	acl      []byte
	messages []*message
	byID     map[string]*message
	expiring time.Time // no message expires before
	deleted  time.Time // when it was deleted; zero while it lives
}

// New returns an empty Queue service of an account.
func New(a *storage.Account) *Service { return &Service{Account: a} }

// Ensure creates a queue if it is missing.
func (s *Service) Ensure(name string) {
	if s.queue(name) == nil {
		s.addQueue(name, nil)
	}
}

func (s *Service) addQueue(name string, metadata map[string]string) {
	if s.named == nil {
		s.named = map[string]*queueState{}
	}
	s.named[name] = &queueState{name: name, metadata: metadata}
}

// queue returns a queue, even one that is being deleted. Nil means that the name is free.
func (s *Service) queue(name string) *queueState {
	q := s.named[name]
	if q != nil && !q.deleted.IsZero() && time.Since(q.deleted) >= s.Options.Deletion {
		delete(s.named, name)
		return nil
	}
	return q
}

// Properties returns the service's settings, as they were set.
func (s *Service) Properties() []byte { return s.properties }

// Policies returns the stored access policies of a queue.
func (s *Service) Policies(name string) []byte {
	if q := s.queue(name); q != nil {
		return q.acl
	}
	return nil
}

// IsQueue reports whether a request is to the Queue service: by the host, or behind a Proxy by properties that only
// such requests have.
func IsQueue(hr *http.Request) bool {
	return hr.URL.Host == Host || strings.HasSuffix(hr.URL.Path, "/messages") || strings.Contains(hr.URL.Path, "/messages/")
}

// Operation names a request to the Queue service as the REST reference does.
func Operation(method, resource string, q url.Values) string {
	name, rest, _ := strings.Cut(resource, "/")
	write := method == http.MethodPut
	switch comp := q.Get("comp"); {
	case name == "" && comp == "list":
		return "List Queues"
	case name == "" && comp == "stats":
		return "Get Queue Service Stats"
	case name == "":
		return storage.Verb(write) + "Queue Service Properties"
	case rest == "messages" && method == http.MethodPost:
		return "Put Message"
	case rest == "messages" && method == http.MethodDelete:
		return "Clear Messages"
	case rest == "messages" && q.Get("peekonly") == "true":
		return "Peek Messages"
	case rest == "messages":
		return "Get Messages"
	case rest != "" && write:
		return "Update Message"
	case rest != "":
		return "Delete Message"
	case comp == "metadata":
		return storage.Verb(write) + "Queue Metadata"
	case comp == "acl":
		return storage.Verb(write) + "Queue ACL"
	case method == http.MethodDelete:
		return "Delete Queue"
	}
	return "Create Queue"
}

var queueVerbs = storage.Verbs{"": "PUT DELETE", "metadata": "GET HEAD PUT", "acl": "GET HEAD PUT"}

// Route routes a request to the Queue service.
func (s *Service) Route(r *storage.Request) *storage.Answer {
	comp := r.Query.Get("comp")
	if r.Container == "" {
		return s.routeQueueAccount(r)
	}
	if !storage.ContainerName.MatchString(r.Container) || len(r.Container) > 63 || len(r.Container) < 3 {
		return storage.Fail(http.StatusBadRequest, "InvalidResourceName", "The specified resource name contains invalid characters.")
	}
	if r.Blob == "" {
		if a := queueVerbs.Refuse(r); a != nil {
			return a
		}
	}
	q := s.queue(r.Container)
	if r.Method == http.MethodPut && comp == "" && r.Blob == "" {
		return s.createQueue(r, q)
	}
	if q == nil || !q.deleted.IsZero() {
		return storage.Fail(http.StatusNotFound, "QueueNotFound", "The specified queue does not exist.")
	}
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case r.Blob != "":
		return s.routeMessages(r, q)
	case r.Method == http.MethodDelete:
		q.deleted = time.Now()
		q.clear()
		return storage.OK(http.StatusNoContent)
	case comp == "metadata" && !read:
		metadata, bad := storage.MetadataOf(r)
		if bad != nil {
			return bad
		}
		q.metadata = metadata
		return storage.OK(http.StatusNoContent)
	case comp == "metadata":
		a := storage.OK(http.StatusOK).Set("x-ms-approximate-messages-count", strconv.Itoa(len(q.alive())))
		for name, value := range q.metadata {
			a.Header.Set("x-ms-meta-"+name, value) // also if it is empty
		}
		return a
	case comp == "acl" && !read:
		var bad *storage.Answer
		if q.acl, bad = storage.PoliciesIn(r.Body); bad != nil {
			return bad
		}
		return storage.OK(http.StatusNoContent)
	case comp == "acl":
		a := storage.OK(http.StatusOK).Set("Content-Type", "application/xml")
		if a.Body = q.acl; len(a.Body) == 0 {
			a.Body = []byte(xml.Header + "<SignedIdentifiers/>")
		}
		return a
	}
	return storage.NotImplemented()
}

// createQueue is idempotent for the same metadata (REST: "Create Queue", 201 and 204).
func (s *Service) createQueue(r *storage.Request, q *queueState) *storage.Answer {
	metadata, bad := storage.MetadataOf(r)
	switch {
	case bad != nil:
		return bad
	case q == nil:
		s.addQueue(r.Container, metadata)
		return storage.OK(http.StatusCreated)
	case !q.deleted.IsZero():
		return storage.Fail(http.StatusConflict, "QueueBeingDeleted", "The specified queue is being deleted.")
	case maps.Equal(q.metadata, metadata):
		return storage.OK(http.StatusNoContent)
	}
	return storage.Fail(http.StatusConflict, "QueueAlreadyExists", "The specified queue already exists.")
}

// routeQueueAccount carries out operations on the account. The service's properties have no version: the last writer
// wins.
func (s *Service) routeQueueAccount(r *storage.Request) *storage.Answer {
	switch comp := r.Query.Get("comp"); {
	case comp == "list" && r.Method == http.MethodGet:
		return s.listQueues(r)
	case comp == "properties" && r.Method == http.MethodPut:
		s.properties = r.Body
		return storage.OK(http.StatusAccepted)
	case comp == "properties":
		a := storage.OK(http.StatusOK).Set("Content-Type", "application/xml")
		if a.Body = s.properties; len(a.Body) == 0 {
			a.Body = []byte(xml.Header + "<StorageServiceProperties/>")
		}
		return a
	}
	return storage.NotImplemented()
}

// listQueues lists by name, in pages (REST: "List Queues").
func (s *Service) listQueues(r *storage.Request) *storage.Answer {
	limit := 5000
	if bad := storage.PageSizeOf(r); bad != nil {
		return bad
	}
	if n, err := strconv.Atoi(r.Query.Get("maxresults")); err == nil {
		limit = min(limit, n)
	}
	if bad := s.MarkerOf(r); bad != nil {
		return bad
	}
	prefix, from := r.Query.Get("prefix"), strings.TrimPrefix(r.Query.Get("marker"), s.ContainerMarker())
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s<EnumerationResults ServiceEndpoint=\"%s\"><Prefix>%s</Prefix><MaxResults>%d</MaxResults><Queues>", xml.Header, s.Endpoint, storage.Escaped(prefix), limit)
	next, n := "", 0
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		q := s.queue(name)
		if q == nil || !q.deleted.IsZero() || !strings.HasPrefix(name, prefix) || name < from {
			continue
		}
		if n == limit {
			next = s.ContainerMarker() + name
			break
		}
		n++
		fmt.Fprintf(&b, "<Queue><Name>%s</Name>", name)
		if strings.Contains(r.Query.Get("include"), "metadata") {
			b.WriteString("<Metadata>")
			for _, key := range slices.Sorted(maps.Keys(q.metadata)) {
				fmt.Fprintf(&b, "<%s>%s</%s>", key, storage.Escaped(q.metadata[key]), key)
			}
			b.WriteString("</Metadata>")
		}
		b.WriteString("</Queue>")
	}
	fmt.Fprintf(&b, "</Queues><NextMarker>%s</NextMarker></EnumerationResults>", next)
	a := storage.OK(http.StatusOK).Set("Content-Type", "application/xml")
	a.Body = b.Bytes()
	return a
}

func outOfRange(name, value string) *storage.Answer {
	return storage.Fail(http.StatusBadRequest, "OutOfRangeQueryParameterValue",
		fmt.Sprintf("One of the query parameters specified in the request URI is outside the permissible range: %s=%s.", name, storage.Escaped(value)))
}
