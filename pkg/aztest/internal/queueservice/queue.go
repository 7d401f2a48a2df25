// Package queueservice is the Queue service of an account in memory: queues and messages.
//
// Route carries out one request, at once. Nothing here locks: package aztest calls a service with its lock held.
package queueservice

import (
	"cmp"
	"encoding/xml"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Host is where the SDK's clients send requests to the Queue service: nothing listens there.
const Host = "127.0.0.1:10001"

// Service is the Queue service's part of the account.
type Service struct {
	storage.Service[*queueState]
	serial int // of ids and pop receipts
}

// queueState is a queue as the service keeps it. Its messages are in the order in which they were put.
type queueState struct {
	storage.Resource
	messages []*message
	byID     map[string]*message
	expiring time.Time // no message expires before
}

// New returns an empty Queue service of an account.
func New(a *storage.Account) *Service {
	s := &Service{}
	s.Account, s.Make = a, func() *queueState { return &queueState{} }
	return s
}

// Route routes a request to the Queue service.
func (s *Service) Route(r *storage.Request) *storage.Answer {
	if a := storage.Refuse(storage.Queue, r); a != nil {
		return a
	}
	comp := r.Query.Get("comp")
	switch {
	case r.Container == "" && comp == "list":
		return s.listQueues(r)
	case r.Container == "":
		return s.Settings(r)
	}
	if a := storage.InvalidName(r.Container); a != nil {
		return a
	}
	q := s.Find(r.Container)
	if r.Method == http.MethodPut && comp == "" && r.Blob == "" {
		return s.createQueue(r, q)
	}
	switch {
	case q == nil || q.Gone():
		return storage.Missing("Queue")
	case r.Blob != "":
		return s.routeMessages(r, q)
	case r.Method == http.MethodDelete:
		q.Deleted = time.Now()
		q.clear()
	case r.Reads():
		a := q.Show(r)
		if comp == "metadata" {
			a.Set("x-ms-approximate-messages-count", strconv.Itoa(len(q.alive())))
		}
		return a
	default:
		if bad := q.Set(r); bad != nil {
			return bad
		}
	}
	return storage.OK(http.StatusNoContent)
}

// createQueue is idempotent for the same metadata (REST: "Create Queue", 201 and 204).
func (s *Service) createQueue(r *storage.Request, q *queueState) *storage.Answer {
	metadata, bad := storage.MetadataOf(r)
	switch {
	case bad != nil:
		return bad
	case q == nil:
		s.Add(r.Container, metadata)
		return storage.OK(http.StatusCreated)
	case q.Gone():
		return storage.BeingDeleted("Queue")
	case maps.Equal(q.Metadata, metadata):
		return storage.OK(http.StatusNoContent)
	}
	return storage.AlreadyThere("Queue")
}

// listQueues lists by name, in pages (REST: "List Queues").
func (s *Service) listQueues(r *storage.Request) *storage.Answer {
	page, next, bad := s.Page(r)
	if bad != nil {
		return bad
	}
	list := queueList{Endpoint: s.Endpoint, Prefix: r.Query.Get("prefix"), MaxResults: cmp.Or(r.Query.Get("maxresults"), "5000"), NextMarker: next}
	for _, name := range page {
		one := listedQueue{Name: name}
		if strings.Contains(r.Query.Get("include"), "metadata") {
			one.Metadata = s.Find(name).Metadata
		}
		list.Queues = append(list.Queues, one)
	}
	return storage.XML(list)
}

type (
	queueList struct {
		XMLName    xml.Name `xml:"EnumerationResults"`
		Endpoint   string   `xml:"ServiceEndpoint,attr"`
		Prefix     string
		MaxResults string
		Queues     []listedQueue `xml:"Queues>Queue"`
		NextMarker string
	}
	listedQueue struct {
		Name     string
		Metadata storage.ListedMetadata
	}
)
