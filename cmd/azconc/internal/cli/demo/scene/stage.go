package scene

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	fileservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/azaccount"
	"github.com/azconc/azconc/pkg/retry"
)

// Rig is where scenes are played.
type Rig struct {
	Account *azaccount.Account
	// Options returns the options of each client.
	Options func() azcore.ClientOptions
	// Suffix makes the names of containers, tables, queues and shares differ from those of other runs: lower-case letters and digits.
	Suffix string
}

// stage is a scene that is being played. After an act has failed, the others do nothing.
type stage struct {
	rig  Rig
	rec  *recorder
	name string // of the containers, queues and shares of this scene
	ends []func(context.Context) error
	err  error
}

// ok plays an act that succeeds.
func (s *stage) ok(c *client, does, library, command string, run func() error) {
	if err := s.act(c, does, library, command, run); err != nil {
		s.err = fmt.Errorf("%s: %s: %w", c.lane.client, does, err)
	}
}

// refused plays an act that must be refused with want.
func (s *stage) refused(c *client, does, library, command string, want error, run func() error) {
	err := s.act(c, does, library, command, run)
	switch {
	case s.err != nil:
	case err == nil:
		s.err = fmt.Errorf("%s: %s: the service did not refuse it", c.lane.client, does)
	case want != nil && !errors.Is(err, want):
		s.err = fmt.Errorf("%s: %s: %w", c.lane.client, does, err)
	}
}

func (s *stage) act(c *client, does, library, command string, run func() error) error {
	if s.err != nil {
		return nil
	}
	s.rec.mu.Lock()
	s.rec.acts = append(s.rec.acts, Act{Client: c.lane.client, Does: does, Library: library, Command: s.names(command)})
	n := len(s.rec.acts) - 1
	s.rec.mu.Unlock()
	err := run()
	if err != nil {
		s.rec.mu.Lock()
		s.rec.acts[n].Error = text(err)
		s.rec.mu.Unlock()
	}
	return err
}

// names puts the scene's names into a command: @ is the container, queue or share, and # the table.
func (s *stage) names(command string) string {
	return strings.NewReplacer("@", s.name, "#", s.table()).Replace(command)
}

func (s *stage) table() string { return strings.ReplaceAll(s.name, "-", "") }

// prepare does what the scene needs before it begins; it is not recorded.
func (s *stage) prepare(run func() error) {
	if s.err == nil {
		s.err = run()
	}
}

// pause lets time pass for a client.
func (s *stage) pause(ctx context.Context, c *client, d time.Duration) {
	if s.err != nil {
		return
	}
	began := time.Now()
	s.err = retry.Sleep(ctx, d)
	s.rec.mu.Lock()
	defer s.rec.mu.Unlock()
	s.rec.events = append(s.rec.events, Event{
		Client: c.lane.client, Subject: "process", Kind: "paused", AtMS: s.rec.since(began), TookMS: milliseconds(time.Since(began)),
	})
}

// client is one of the clients of a scene, with a lane of its own.
type client struct {
	s      *stage
	lane   *lane
	blobs  *azservice.Client
	queues *azqueue.ServiceClient
	tables *aztables.ServiceClient
	files  *fileservice.Client
}

// client returns a client with a name; "" is one whose requests are not recorded.
func (s *stage) client(name string) *client {
	c := &client{s: s, lane: &lane{r: s.rec, client: name, hidden: name == ""}}
	if s.err != nil {
		return c
	}
	options := func(service azaccount.Service) azcore.ClientOptions {
		if u, err := url.Parse(s.rig.Account.Endpoint(service)); err == nil && len(u.Path) > 1 { // of an emulator
			c.lane.prefix = strings.TrimSuffix(u.Path, "/")
		}
		o := s.rig.Options()
		o.PerRetryPolicies = append(o.PerRetryPolicies, c.lane)
		return o
	}
	a := s.rig.Account
	var err error
	if c.blobs, err = a.BlobService(&azservice.ClientOptions{ClientOptions: options(azaccount.Blob)}); err != nil {
		s.err = err
		return c
	}
	if a.Endpoint(azaccount.Queue) != "" {
		o := &azqueue.ClientOptions{ClientOptions: options(azaccount.Queue)}
		o.PerRetryPolicies = append(o.PerRetryPolicies, idempotent.Policy())
		if c.queues, err = a.QueueService(o); err != nil {
			s.err = err
		}
	}
	if a.Endpoint(azaccount.Table) != "" {
		if c.tables, err = a.TableService(&aztables.ClientOptions{ClientOptions: options(azaccount.Table)}); err != nil {
			s.err = err
		}
	}
	if a.Endpoint(azaccount.File) != "" {
		if c.files, err = a.FileService(&fileservice.ClientOptions{ClientOptions: options(azaccount.File)}); err != nil {
			s.err = err
		}
	}
	return c
}

func (c *client) container() *container.Client       { return c.blobs.NewContainerClient(c.s.name) }
func (c *client) blob(name string) *blockblob.Client { return c.container().NewBlockBlobClient(name) }
func (c *client) queue() *azqueue.QueueClient        { return c.queues.NewQueueClient(c.s.name) }
func (c *client) table() *aztables.Client            { return c.tables.NewClient(c.s.table()) }
func (c *client) share() *share.Client               { return c.files.NewShareClient(c.s.name) }

// box creates the scene's container, which is deleted when the scene ends.
func (s *stage) box(ctx context.Context) *client {
	c := s.client("")
	s.prepare(func() error {
		_, err := c.container().Create(ctx, nil)
		if err == nil {
			s.ends = append(s.ends, func(ctx context.Context) error { _, err := c.container().Delete(ctx, nil); return err })
		}
		return err
	})
	return c
}
