package workload

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/azerr"
)

// Site is an account, and what the workloads have created there. It is not safe for concurrent use.
type Site struct {
	account *azaccount.Account
	options func() azcore.ClientOptions
	name    string

	cells   int // that have run, which gives each a resource of its own
	created []Resource
}

// Resource is something that a Site has created.
type Resource struct {
	Kind string `json:"kind"` // container, table or queue
	Name string `json:"name"`
}

func (r Resource) String() string { return r.Kind + " " + r.Name }

// New returns a Site with a name of its own. options returns those of a client, new ones each time. It sends nothing.
func New(account *azaccount.Account, options func() azcore.ClientOptions) *Site {
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails
	return &Site{account: account, options: options, name: "azconc-bench-" + hex.EncodeToString(id[:])}
}

// Name returns the name of what the Site creates: that of the container, the beginning of those of queues, and without hyphens that
// of the tables.
func (s *Site) Name() string { return s.name }

func (s *Site) table(which string) string { return strings.ReplaceAll(s.name, "-", "") + which }

// meter counts the requests of a cell, and reports when their bound is reached.
type meter struct {
	sent  atomic.Int64
	bound int64
	full  func() // called once, when bound requests have been sent
}

// Do implements policy.Policy. A try is a request.
func (m *meter) Do(req *policy.Request) (*http.Response, error) {
	if m.sent.Add(1) == m.bound && m.full != nil {
		m.full()
	}
	return req.Next()
}

func (s *Site) metered(m *meter, more ...policy.Policy) azcore.ClientOptions {
	o := s.options()
	if m != nil {
		o.PerRetryPolicies = append(slices.Clip(o.PerRetryPolicies), m)
	}
	o.PerRetryPolicies = append(slices.Clip(o.PerRetryPolicies), more...)
	return o
}

func (s *Site) container(m *meter) (*container.Client, error) {
	c, err := s.account.BlobService(&blobservice.ClientOptions{ClientOptions: s.metered(m)})
	if err != nil {
		return nil, err
	}
	return c.NewContainerClient(s.name), nil
}

func (s *Site) tables(m *meter) (*aztables.ServiceClient, error) {
	return s.account.TableService(&aztables.ClientOptions{ClientOptions: s.metered(m)})
}

func (s *Site) queues(m *meter) (*azqueue.ServiceClient, error) {
	return s.account.QueueService(&azqueue.ClientOptions{ClientOptions: s.metered(m, idempotent.Policy())})
}

// needs returns the kinds of resources that cells need before they run; a queue is created by each cell that needs one.
func needs(cells []Cell) (container bool, tables []string) {
	for _, c := range cells {
		switch c.Workload {
		case Blob, Document, Lock:
			container = true
		case Entity, TableLock:
			container, tables = container || c.Workload == TableLock || c.Way == Lease, append(tables, "data")
		case Consume:
			switch c.Way {
			case Redelivery, Owner:
				tables = append(tables, "markers")
			case Inbox:
				tables = append(tables, "data")
			}
		}
	}
	slices.Sort(tables)
	return container, slices.Compact(tables)
}

// Create creates the container and the tables that cells need. After an error Remove deletes what may have been created.
//
// Requests: 3 at most.
func (s *Site) Create(ctx context.Context, cells []Cell) error {
	container, tables := needs(cells)
	if container {
		c, err := s.container(nil)
		if err != nil {
			return err
		}
		s.created = append(s.created, Resource{"container", s.name})
		if _, err := c.Create(ctx, nil); err != nil && !azerr.Has(err, "ContainerAlreadyExists") { // a repeated request
			return err
		}
	}
	if len(tables) == 0 {
		return nil
	}
	c, err := s.tables(nil)
	if err != nil {
		return err
	}
	for _, which := range tables {
		s.created = append(s.created, Resource{"table", s.table(which)})
		if _, err := c.CreateTable(ctx, s.table(which), nil); err != nil && !azerr.Has(err, "TableAlreadyExists") {
			return err
		}
	}
	return nil
}

// Remove deletes everything that was created, even if ctx has ended, within half a minute. It returns what may be left, and why.
//
// Requests: 1 for each resource.
func (s *Site) Remove(ctx context.Context) (left []Resource, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	var problems []error
	for _, r := range s.created {
		if err := s.remove(ctx, r); err != nil && azerr.Absent(err) == "" {
			left, problems = append(left, r), append(problems, err)
		}
	}
	s.created = left
	return left, errors.Join(problems...)
}

func (s *Site) remove(ctx context.Context, r Resource) error {
	switch r.Kind {
	case "container":
		c, err := s.container(nil)
		if err == nil {
			_, err = c.Delete(ctx, nil)
		}
		return err
	case "queue":
		c, err := s.queues(nil)
		if err == nil {
			_, err = c.DeleteQueue(ctx, r.Name, nil)
		}
		return err
	}
	c, err := s.tables(nil)
	if err == nil {
		_, err = c.DeleteTable(ctx, r.Name, nil)
	}
	return err
}
