package aztest

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

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

const queueHost = "127.0.0.1:10001"

// QueueURL is the Queue service's URL for clients whose transport is the Service.
func (s *Service) QueueURL() string { return "http://" + queueHost + "/" + Account }

// QueueHandler serves the Queue service over HTTP, at /devstoreaccount1. A lost response closes the connection.
func (s *Service) QueueHandler() http.Handler { return s.injector.handler(queueHost) }

// QueueService returns a client for the account's queues.
func (s *Service) QueueService() *azqueue.ServiceClient {
	credential, err := azqueue.NewSharedKeyCredential(Account, Key)
	if err != nil {
		panic(err) // the constants are wrong
	}
	client, err := azqueue.NewServiceClientWithSharedKeyCredential(s.QueueURL()+"/", credential, &azqueue.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		panic(err)
	}
	return client
}

// Queue returns a client for a queue, and creates the queue if it is missing, without a request.
func (s *Service) Queue(name string) *azqueue.QueueClient {
	s.mu.Lock()
	if s.queue(name) == nil {
		s.addQueue(name, nil)
	}
	s.mu.Unlock()
	return s.QueueService().NewQueueClient(name)
}

// queues is the Queue service's part of the account.
type queues struct {
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

func (s *Service) addQueue(name string, metadata map[string]string) {
	if s.queues.named == nil {
		s.queues.named = map[string]*queueState{}
	}
	s.queues.named[name] = &queueState{name: name, metadata: metadata}
}

// queue returns a queue, even one that is being deleted. Nil means that the name is free.
func (s *Service) queue(name string) *queueState {
	q := s.queues.named[name]
	if q != nil && !q.deleted.IsZero() && time.Since(q.deleted) >= s.o.DeletionDelay {
		delete(s.queues.named, name)
		return nil
	}
	return q
}

// isQueue reports whether a request is to the Queue service: by the host, or behind a Proxy by properties that only
// such requests have.
func isQueue(hr *http.Request) bool {
	return hr.URL.Host == queueHost || strings.HasSuffix(hr.URL.Path, "/messages") || strings.Contains(hr.URL.Path, "/messages/")
}

// queueOperation names a request to the Queue service as the REST reference does.
func queueOperation(method, resource string, q url.Values) string {
	name, rest, _ := strings.Cut(resource, "/")
	write := method == http.MethodPut
	switch comp := q.Get("comp"); {
	case name == "" && comp == "list":
		return "List Queues"
	case name == "":
		return verb(write) + "Queue Service Properties"
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
		return verb(write) + "Queue Metadata"
	case comp == "acl":
		return verb(write) + "Queue ACL"
	case method == http.MethodDelete:
		return "Delete Queue"
	}
	return "Create Queue"
}

// routeQueue routes a request to the Queue service.
func (s *Service) routeQueue(r *request) *answer {
	comp := r.query.Get("comp")
	if r.container == "" {
		return s.routeQueueAccount(r)
	}
	if !containerName.MatchString(r.container) || len(r.container) > 63 || len(r.container) < 3 {
		return fail(http.StatusBadRequest, "InvalidResourceName", "The specified resource name contains invalid characters.")
	}
	q := s.queue(r.container)
	if r.method == http.MethodPut && comp == "" && r.blob == "" {
		return s.createQueue(r, q)
	}
	if q == nil || !q.deleted.IsZero() {
		return fail(http.StatusNotFound, "QueueNotFound", "The specified queue does not exist.")
	}
	read := r.method == http.MethodGet || r.method == http.MethodHead
	switch {
	case r.blob != "":
		return s.routeMessages(r, q)
	case r.method == http.MethodDelete:
		q.deleted = time.Now()
		q.clear()
		return ok(http.StatusNoContent)
	case comp == "metadata" && !read:
		metadata, bad := metadataOf(r)
		if bad != nil {
			return bad
		}
		q.metadata = metadata
		return ok(http.StatusNoContent)
	case comp == "metadata":
		a := ok(http.StatusOK).set("x-ms-approximate-messages-count", strconv.Itoa(len(q.alive())))
		for name, value := range q.metadata {
			a.header.Set("x-ms-meta-"+name, value) // also if it is empty
		}
		return a
	case comp == "acl" && !read:
		var bad *answer
		if q.acl, bad = policiesIn(r.body); bad != nil {
			return bad
		}
		return ok(http.StatusNoContent)
	case comp == "acl":
		a := ok(http.StatusOK).set("Content-Type", "application/xml")
		if a.body = q.acl; len(a.body) == 0 {
			a.body = []byte(xml.Header + "<SignedIdentifiers/>")
		}
		return a
	}
	return notImplemented()
}

// createQueue is idempotent for the same metadata (REST: "Create Queue", 201 and 204).
func (s *Service) createQueue(r *request, q *queueState) *answer {
	metadata, bad := metadataOf(r)
	switch {
	case bad != nil:
		return bad
	case q == nil:
		s.addQueue(r.container, metadata)
		return ok(http.StatusCreated)
	case !q.deleted.IsZero():
		return fail(http.StatusConflict, "QueueBeingDeleted", "The specified queue is being deleted.")
	case maps.Equal(q.metadata, metadata):
		return ok(http.StatusNoContent)
	}
	return fail(http.StatusConflict, "QueueAlreadyExists", "The specified queue already exists.")
}

// routeQueueAccount carries out operations on the account. The service's properties have no version: the last writer
// wins.
func (s *Service) routeQueueAccount(r *request) *answer {
	switch comp := r.query.Get("comp"); {
	case comp == "list" && r.method == http.MethodGet:
		return s.listQueues(r)
	case comp == "properties" && r.method == http.MethodPut:
		s.queues.properties = r.body
		return ok(http.StatusAccepted)
	case comp == "properties":
		a := ok(http.StatusOK).set("Content-Type", "application/xml")
		if a.body = s.queues.properties; len(a.body) == 0 {
			a.body = []byte(xml.Header + "<StorageServiceProperties/>")
		}
		return a
	}
	return notImplemented()
}

// listQueues lists by name, in pages (REST: "List Queues").
func (s *Service) listQueues(r *request) *answer {
	limit := 5000
	if text := r.query.Get("maxresults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return outOfRange("maxresults", text)
		}
		limit = min(limit, n)
	}
	if bad := markerOf(r); bad != nil {
		return bad
	}
	prefix, from := r.query.Get("prefix"), strings.TrimPrefix(r.query.Get("marker"), containerMarker)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s<EnumerationResults ServiceEndpoint=\"%s\"><Prefix>%s</Prefix><MaxResults>%d</MaxResults><Queues>", xml.Header, s.QueueURL(), escaped(prefix), limit)
	next, n := "", 0
	for _, name := range slices.Sorted(maps.Keys(s.queues.named)) {
		q := s.queue(name)
		if q == nil || !q.deleted.IsZero() || !strings.HasPrefix(name, prefix) || name < from {
			continue
		}
		if n == limit {
			next = containerMarker + name
			break
		}
		n++
		fmt.Fprintf(&b, "<Queue><Name>%s</Name>", name)
		if strings.Contains(r.query.Get("include"), "metadata") {
			b.WriteString("<Metadata>")
			for _, key := range slices.Sorted(maps.Keys(q.metadata)) {
				fmt.Fprintf(&b, "<%s>%s</%s>", key, escaped(q.metadata[key]), key)
			}
			b.WriteString("</Metadata>")
		}
		b.WriteString("</Queue>")
	}
	fmt.Fprintf(&b, "</Queues><NextMarker>%s</NextMarker></EnumerationResults>", next)
	a := ok(http.StatusOK).set("Content-Type", "application/xml")
	a.body = b.Bytes()
	return a
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

func outOfRange(name, value string) *answer {
	return fail(http.StatusBadRequest, "OutOfRangeQueryParameterValue",
		fmt.Sprintf("One of the query parameters specified in the request URI is outside the permissible range: %s=%s.", name, escaped(value)))
}
