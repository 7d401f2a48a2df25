package scene

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	fileservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// Rig is where scenes are played.
type Rig struct {
	// The clients of the account's services. Files is nil if it has none; their scene is skipped then.
	Blobs  func(*azservice.ClientOptions) (*azservice.Client, error)
	Queues func(*azqueue.ClientOptions) (*azqueue.ServiceClient, error)
	Tables func(*aztables.ClientOptions) (*aztables.ServiceClient, error)
	Files  func(*fileservice.ClientOptions) (*fileservice.Client, error)
	// Options returns the options of each client.
	Options func() azcore.ClientOptions
	// Prefix begins the names of containers, tables, queues and shares: at most 40 lower-case letters, digits and hyphens.
	Prefix string
}

// NewPrefix returns a prefix that differs from those of other runs.
func NewPrefix() string { return "azconc-" + strings.ToLower(rand.Text()[:8]) + "-" }

// OnConnection returns a rig on the account of a connection string, which names the endpoints of its services.
func OnConnection(connection string, options func() azcore.ClientOptions) Rig {
	r := Rig{Options: options, Prefix: NewPrefix()}
	r.Blobs = func(o *azservice.ClientOptions) (*azservice.Client, error) {
		return azservice.NewClientFromConnectionString(connection, o)
	}
	r.Queues = func(o *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
		return azqueue.NewServiceClientFromConnectionString(connection, o)
	}
	r.Tables = func(o *aztables.ClientOptions) (*aztables.ServiceClient, error) {
		return aztables.NewServiceClientFromConnectionString(connection, o)
	}
	if strings.Contains(connection, "FileEndpoint=") { // Azurite has none
		r.Files = func(o *fileservice.ClientOptions) (*fileservice.Client, error) {
			return fileservice.NewClientFromConnectionString(connection, o)
		}
	}
	return r
}

// stage is a scene that is being played.
type stage struct {
	ctx  context.Context // ends with the run; while ends run, it has a time of its own
	rig  Rig
	name string         // of the containers, queues and shares of this scene
	ends []func() error // delete what was created, last first
	err  error

	tallies []Tally

	mu   sync.Mutex // guards what the clients' requests record
	acts []Act
}

// must ends the scene if what it needs has failed.
func (s *stage) must(err error) {
	if err != nil {
		s.err = err
		runtime.Goexit()
	}
}

// ok plays an act that succeeds.
func (s *stage) ok(c *client, does, library, command string, run func() error) {
	if err := s.act(c, does, library, command, run); err != nil {
		s.must(fmt.Errorf("%s: %s: %w", c.name, does, err))
	}
}

// refused plays an act that must be refused with want.
func (s *stage) refused(c *client, does, library, command string, want error, run func() error) {
	err := s.act(c, does, library, command, run)
	switch {
	case err == nil:
		s.must(fmt.Errorf("%s: %s: the service did not refuse it", c.name, does))
	case want != nil && !errors.Is(err, want):
		s.must(fmt.Errorf("%s: %s: %w", c.name, does, err))
	}
}

// act plays an act. In its command, @ stands for the container, queue or share, and # for the table.
func (s *stage) act(c *client, does, library, command string, run func() error) error {
	s.mu.Lock()
	command = strings.NewReplacer("@", s.name, "#", s.table()).Replace(command)
	s.acts = append(s.acts, Act{Client: c.name, Does: does, Library: library, Command: command, Requests: []Request{}})
	n := len(s.acts) - 1
	s.mu.Unlock()
	err := run()
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.acts[n].Error = azerr.Clean(err).Error()
	}
	return err
}

func (s *stage) table() string { return strings.ReplaceAll(s.name, "-", "") }

// tally notes what an act of c has reported, and what is stored.
func (s *stage) tally(c *client, reported, stored int) {
	s.tallies = append(s.tallies, Tally{c.name, reported, stored, c.lost})
}

// client is one of the clients of a scene. It is also the policy that records its requests; see record.go.
type client struct {
	*stage
	name   string // "": it is not recorded
	prefix string // of paths: the account in the URL of an emulator
	lose   int    // one in so many writes gets no response; 0: each gets one
	writes int    // guarded by mu, as lost is
	lost   int

	blobs  *azservice.Client
	queues *azqueue.ServiceClient
	tables *aztables.ServiceClient
	files  *fileservice.Client
}

// client returns a client with a name; "" is one whose requests are not recorded.
func (s *stage) client(name string) *client { return s.lossy(name, 0) }

// lossy returns a client that gets no response to one write in so many. The SDK sends it again at once.
func (s *stage) lossy(name string, lose int) *client {
	c := &client{stage: s, name: name, lose: lose}
	options := func() azcore.ClientOptions {
		o := s.rig.Options()
		o.PerRetryPolicies = append(o.PerRetryPolicies, c)
		if lose > 0 {
			o.Retry.RetryDelay = time.Millisecond
		}
		return o
	}
	var err error
	c.blobs, err = s.rig.Blobs(&azservice.ClientOptions{ClientOptions: options()})
	s.must(err)
	u, err := url.Parse(c.blobs.URL())
	s.must(err)
	c.prefix = strings.TrimSuffix(u.Path, "/")
	queues := &azqueue.ClientOptions{ClientOptions: options()}
	queues.PerRetryPolicies = append(queues.PerRetryPolicies, idempotent.Policy())
	c.queues, err = s.rig.Queues(queues)
	s.must(err)
	c.tables, err = s.rig.Tables(&aztables.ClientOptions{ClientOptions: options()})
	s.must(err)
	if s.rig.Files != nil {
		c.files, err = s.rig.Files(&fileservice.ClientOptions{ClientOptions: options()})
		s.must(err)
	}
	return c
}

func (c *client) container() *container.Client       { return c.blobs.NewContainerClient(c.stage.name) }
func (c *client) blob(name string) *blockblob.Client { return c.container().NewBlockBlobClient(name) }
func (c *client) queue() *azqueue.QueueClient        { return c.queues.NewQueueClient(c.stage.name) }
func (c *client) entities() *aztables.Client         { return c.tables.NewClient(c.table()) }
func (c *client) file() *file.Client {
	return c.files.NewShareClient(c.stage.name).NewRootDirectoryClient().NewFileClient("page.txt")
}

// locker returns a locker in the scene's container whose owner is the client.
func (c *client) locker() *pessimistic.Locker {
	k, err := pessimistic.NewLocker(c.container(), &pessimistic.LockerOptions{Owner: c.name})
	c.must(err)
	return k
}

// only returns the error of a call whose other result is of no interest.
func only[T any](_ T, err error) error { return err }

// created ends the scene if err is one, and deletes what was created when the scene ends.
func (s *stage) created(err error, remove func() error) {
	s.must(err)
	s.ends = append(s.ends, remove)
}

// box creates the scene's container, and returns a client that is not recorded.
func (s *stage) box() *client {
	c := s.client("")
	s.created(only(c.container().Create(s.ctx, nil)), func() error { return only(c.container().Delete(s.ctx, nil)) })
	return c
}

// line creates the scene's queue.
func (s *stage) line() {
	c := s.client("")
	s.created(only(c.queue().Create(s.ctx, nil)), func() error { return only(c.queue().Delete(s.ctx, nil)) })
}

// rows creates the scene's table, and returns a client that is not recorded.
func (s *stage) rows() *client {
	c := s.client("")
	s.created(only(tables.CreateTable(s.ctx, c.entities(), nil)), func() error { return only(tables.DeleteTable(s.ctx, c.entities(), nil)) })
	return c
}
