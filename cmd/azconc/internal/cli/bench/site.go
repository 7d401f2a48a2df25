package bench

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
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/azerr"
)

// site is an account, and what was created there. It is not safe for concurrent use.
type site struct {
	account *azaccount.Account
	options func() azcore.ClientOptions // of a client, new ones each time
	name    string                      // of the container and the queue, and without hyphens of the table
	created []resource
}

// resource is something that a site has created.
type resource struct {
	Kind string `json:"kind"` // container, table or queue
	Name string `json:"name"`
}

func (r resource) String() string { return r.Kind + " " + r.Name }

// newSite returns a site with a name of its own. It sends nothing.
func newSite(account *azaccount.Account, options func() azcore.ClientOptions) *site {
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails
	return &site{account: account, options: options, name: "azconc-bench-" + hex.EncodeToString(id[:])}
}

// meter counts the requests of a cell, and ends it when their bound is reached.
type meter struct {
	sent  atomic.Int64
	bound int64
	full  func() // is called once
}

// Do implements policy.Policy. A try is a request.
func (m *meter) Do(req *policy.Request) (*http.Response, error) {
	if m.sent.Add(1) == m.bound {
		m.full()
	}
	return req.Next()
}

func (s *site) metered(m *meter, more ...policy.Policy) azcore.ClientOptions {
	o := s.options()
	if m != nil {
		more = append(more, m)
	}
	o.PerRetryPolicies = append(slices.Clip(o.PerRetryPolicies), more...)
	return o
}

func (s *site) container(m *meter) (*container.Client, error) {
	c, err := s.account.BlobService(&blobservice.ClientOptions{ClientOptions: s.metered(m)})
	if err != nil {
		return nil, err
	}
	return c.NewContainerClient(s.name), nil
}

// blob returns the blob of a cell.
func (s *site) blob(c cell, m *meter) (*blockblob.Client, error) {
	box, err := s.container(m)
	if err != nil {
		return nil, err
	}
	return box.NewBlockBlobClient(c.name()), nil
}

func (s *site) tableName() string { return strings.ReplaceAll(s.name, "-", "") }

func (s *site) table(m *meter) (*aztables.Client, error) {
	c, err := s.account.TableService(&aztables.ClientOptions{ClientOptions: s.metered(m)})
	if err != nil {
		return nil, err
	}
	return c.NewClient(s.tableName()), nil
}

func (s *site) queue(m *meter) (*azqueue.QueueClient, error) {
	c, err := s.account.QueueService(&azqueue.ClientOptions{ClientOptions: s.metered(m, idempotent.Policy())})
	if err != nil {
		return nil, err
	}
	return c.NewQueueClient(s.name), nil
}

// on returns what creates and what deletes the container, the table or the queue.
func (s *site) on(kind string) (create, remove func(context.Context) error, err error) {
	switch kind {
	case "container":
		c, err := s.container(nil)
		return func(ctx context.Context) error { _, err := c.Create(ctx, nil); return err },
			func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }, err
	case "queue":
		c, err := s.queue(nil)
		return func(ctx context.Context) error { _, err := c.Create(ctx, nil); return err },
			func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }, err
	}
	c, err := s.table(nil)
	return func(ctx context.Context) error { _, err := c.CreateTable(ctx, nil); return err },
		func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }, err
}

// create creates the container, the table or the queue, unless it has done so before. After an error remove deletes what may have
// been created.
func (s *site) create(ctx context.Context, kind string) error {
	r := resource{kind, s.name}
	if kind == "table" {
		r.Name = s.tableName()
	}
	if slices.Contains(s.created, r) {
		return nil
	}
	create, _, err := s.on(kind)
	if err != nil {
		return err
	}
	s.created = append(s.created, r)
	err = create(ctx)
	if azerr.Has(err, "ContainerAlreadyExists", "QueueAlreadyExists", "TableAlreadyExists") { // a request that was sent twice
		return nil
	}
	return err
}

// remove deletes everything that was created, even if ctx has ended, within half a minute. It returns what may be left, and why.
func (s *site) remove(ctx context.Context) (left []resource, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for _, r := range s.created {
		_, remove, problem := s.on(r.Kind)
		if problem == nil {
			problem = remove(ctx)
		}
		if problem != nil && azerr.Absent(problem) == "" {
			left, err = append(left, r), errors.Join(err, problem)
		}
	}
	s.created = left
	return left, err
}
