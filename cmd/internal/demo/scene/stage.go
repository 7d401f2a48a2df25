package scene

import (
	"context"
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

// Rig is where scenes are played: what makes the clients of an account's services. Files is nil if the account has none; their scene is
// skipped then.
type Rig struct {
	Blobs   func(*azservice.ClientOptions) (*azservice.Client, error)
	Queues  func(*azqueue.ClientOptions) (*azqueue.ServiceClient, error)
	Tables  func(*aztables.ClientOptions) (*aztables.ServiceClient, error)
	Files   func(*fileservice.ClientOptions) (*fileservice.Client, error)
	Options func() azcore.ClientOptions // of each client

	prefix string // of the names of what is created; "" is drawn at random
}

// OnConnection returns a rig on the account of a connection string, which names the endpoints of its services.
func OnConnection(connection string, options func() azcore.ClientOptions) Rig {
	r := Rig{
		Blobs:   on(connection, azservice.NewClientFromConnectionString),
		Queues:  on(connection, azqueue.NewServiceClientFromConnectionString),
		Tables:  on(connection, aztables.NewServiceClientFromConnectionString),
		Options: options,
	}
	if strings.Contains(connection, "FileEndpoint=") { // Azurite has none
		r.Files = on(connection, fileservice.NewClientFromConnectionString)
	}
	return r
}

// on returns what makes clients by a connection string.
func on[C, O any](connection string, newClient func(string, *O) (*C, error)) func(*O) (*C, error) {
	return func(o *O) (*C, error) { return newClient(connection, o) }
}

// stage is a scene that is being played.
type stage struct {
	ctx    context.Context // ends with the run; while ends run, it has a time of its own
	rig    Rig
	name   string         // of the containers, queues and shares of this scene: at most 63 lower-case letters, digits and hyphens
	crew   *client        // prepares and judges, and is not recorded
	ends   []func() error // delete what was created, last first
	err    error
	result Result
}

// must ends the scene if what it needs has failed.
func (s *stage) must(err error) {
	if err != nil {
		s.err = err
		runtime.Goexit()
	}
}

func (s *stage) table() string { return strings.ReplaceAll(s.name, "-", "") }

// tally notes what the acts of c have reported, and their effects.
func (s *stage) tally(c *client, reported, effects int, effect string) {
	s.result.Tallies = append(s.result.Tallies, Tally{c.name, reported, effects, effect, c.lost})
}

// client is one of the clients of a scene. It is also the policy that records its requests; see record.go.
type client struct {
	*stage
	name   string // "": it is not recorded
	prefix string // of paths: the account in the URL of an emulator
	lose   int    // one in so many writes gets no response; 0: each gets one

	mu     sync.Mutex // guards what follows: locks are renewed at the side
	act    *Act       // the present one
	writes int
	lost   int

	blobs  *azservice.Client
	queues *azqueue.ServiceClient
	tables *aztables.ServiceClient
	files  *fileservice.Client
}

// client returns a client with a name.
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

// does begins an act, which ok or refused ends: a.does(…).ok(the call). Go evaluates does first, because it stands to the left of the
// call. In the command, @ stands for the container, queue or share, and # for the table.
func (c *client) does(what, library, command string) *client {
	command = strings.NewReplacer("@", c.stage.name, "#", c.table()).Replace(command)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.act = &Act{Client: c.name, Does: what, Library: library, Command: command, Requests: []Request{}}
	c.result.Acts = append(c.result.Acts, c.act)
	return c
}

// ok ends an act that must succeed, or a part of it.
func (c *client) ok(err error) {
	if err != nil {
		c.act.Error = azerr.Clean(err).Error()
		c.must(fmt.Errorf("%s: %s: %w", c.name, c.act.Does, err))
	}
}

// refused ends an act that must be refused, with want unless that is nil.
func (c *client) refused(want, err error) {
	switch {
	case err == nil:
		c.ok(errors.New("the service did not refuse it"))
	case want != nil && !errors.Is(err, want):
		c.ok(err)
	}
	c.act.Error = azerr.Clean(err).Error()
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

// box creates the scene's container.
func (s *stage) box() {
	box := s.crew.container()
	s.created(only(box.Create(s.ctx, nil)), func() error { return only(box.Delete(s.ctx, nil)) })
}

// line creates the scene's queue.
func (s *stage) line() {
	line := s.crew.queue()
	s.created(only(line.Create(s.ctx, nil)), func() error { return only(line.Delete(s.ctx, nil)) })
}

// rows creates the scene's table.
func (s *stage) rows() {
	rows := s.crew.entities()
	s.created(only(tables.CreateTable(s.ctx, rows, nil)), func() error { return only(tables.DeleteTable(s.ctx, rows, nil)) })
}
