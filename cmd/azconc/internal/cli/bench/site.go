package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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
	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
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

// resource is something that a site has created: a container, a table or a queue.
type resource struct {
	kind, name string
	remove     func(context.Context) error
}

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

// create creates the container, the table or the queue, unless it has done so before. After an error remove deletes what may have
// been created.
func (s *site) create(ctx context.Context, kind string) error {
	if slices.ContainsFunc(s.created, func(r resource) bool { return r.kind == kind }) {
		return nil
	}
	r, create := resource{kind: kind, name: s.name}, func() error { return nil }
	switch kind {
	case "container":
		c, err := s.container(nil)
		if err != nil {
			return err
		}
		create = func() error { _, err := c.Create(ctx, nil); return err }
		r.remove = func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }
	case "queue":
		c, err := s.queue(nil)
		if err != nil {
			return err
		}
		create = func() error { _, err := c.Create(ctx, nil); return err }
		r.remove = func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }
	case "table":
		c, err := s.table(nil)
		if err != nil {
			return err
		}
		r.name = s.tableName()
		create = func() error { _, err := c.CreateTable(ctx, nil); return err }
		r.remove = func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }
	}
	s.created = append(s.created, r)
	err := create()
	if azerr.Has(err, "ContainerAlreadyExists", "QueueAlreadyExists", "TableAlreadyExists") { // a request that was sent twice
		return nil
	}
	return err
}

// remove deletes everything that was created, even if ctx has ended, within half a minute, and names what may be left.
func (s *site) remove(ctx context.Context, f *cli.Factory) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for _, r := range s.created {
		if err := r.remove(ctx); err != nil && azerr.Absent(err) == "" {
			f.Notef("left: %s %s, since %s; azconc %[1]s delete %[2]s deletes it", r.kind, r.name, fail.Message(err, fail.Judge(err), "bench", ""))
		}
	}
}
