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
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/retry"
)

// stage is a scene that is being played. After an act has failed, the others do nothing.
type stage struct {
	rig  Rig
	rec  *recorder
	name string // of the containers, queues and shares of this scene
	ends []func(context.Context) error
	err  error

	tallies []Tally
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
	s.rec.acts = append(s.rec.acts, Act{Client: c.lane.client, Does: does, Library: library, Command: s.names(command), Requests: []Request{}})
	n := len(s.rec.acts) - 1
	s.rec.mu.Unlock()
	err := run()
	if err != nil {
		s.rec.mu.Lock()
		s.rec.acts[n].Error, s.rec.acts[n].FailedMS = text(err), s.rec.since(time.Now())
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

// tally notes what an act of c has reported, and what is stored. An act before it may have failed.
func (s *stage) tally(c *client, reported, stored int) {
	if s.err == nil {
		s.tallies = append(s.tallies, Tally{c.lane.client, reported, stored, c.lane.lost})
	}
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
func (s *stage) client(name string) *client { return s.lossy(name, nil) }

// lossy returns a client that gets no response to the writes, counted from 1, that lose selects. The SDK sends them again at once.
func (s *stage) lossy(name string, lose func(write int) bool) *client {
	c := &client{s: s, lane: &lane{r: s.rec, client: name, lose: lose}}
	options := func() azcore.ClientOptions {
		o := s.rig.Options()
		o.PerRetryPolicies = append(o.PerRetryPolicies, c.lane)
		if lose != nil {
			o.Retry.RetryDelay = time.Millisecond
		}
		return o
	}
	s.prepare(func() (err error) {
		if c.blobs, err = s.rig.Blobs(&azservice.ClientOptions{ClientOptions: options()}); err != nil {
			return err
		}
		if u, err := url.Parse(c.blobs.URL()); err == nil {
			c.lane.prefix = strings.TrimSuffix(u.Path, "/")
		}
		queues := &azqueue.ClientOptions{ClientOptions: options()}
		queues.PerRetryPolicies = append(queues.PerRetryPolicies, idempotent.Policy())
		if c.queues, err = s.rig.Queues(queues); err != nil {
			return err
		}
		if c.tables, err = s.rig.Tables(&aztables.ClientOptions{ClientOptions: options()}); err != nil || s.rig.Files == nil {
			return err
		}
		c.files, err = s.rig.Files(&fileservice.ClientOptions{ClientOptions: options()})
		return err
	})
	return c
}

func (c *client) container() *container.Client       { return c.blobs.NewContainerClient(c.s.name) }
func (c *client) blob(name string) *blockblob.Client { return c.container().NewBlockBlobClient(name) }
func (c *client) queue() *azqueue.QueueClient        { return c.queues.NewQueueClient(c.s.name) }
func (c *client) table() *aztables.Client            { return c.tables.NewClient(c.s.table()) }
func (c *client) share() *share.Client               { return c.files.NewShareClient(c.s.name) }

// locker returns a locker in the scene's container whose owner is the client.
func (c *client) locker() (*pessimistic.Locker, error) {
	return pessimistic.NewLocker(c.container(), &pessimistic.LockerOptions{Owner: c.lane.client, Hooks: c.lane.hooks()})
}

// create creates what a scene needs, which is not recorded, and deletes it when the scene ends.
func (s *stage) create(ctx context.Context, create, remove func(context.Context) error) {
	s.prepare(func() error {
		err := create(ctx)
		if err == nil {
			s.ends = append(s.ends, remove)
		}
		return err
	})
}

// box creates the scene's container, and returns a client that is not recorded.
func (s *stage) box(ctx context.Context) *client {
	c := s.client("")
	s.create(ctx,
		func(ctx context.Context) error { _, err := c.container().Create(ctx, nil); return err },
		func(ctx context.Context) error { _, err := c.container().Delete(ctx, nil); return err })
	return c
}

// line creates the scene's queue.
func (s *stage) line(ctx context.Context) {
	c := s.client("")
	s.create(ctx,
		func(ctx context.Context) error { _, err := c.queue().Create(ctx, nil); return err },
		func(ctx context.Context) error { _, err := c.queue().Delete(ctx, nil); return err })
}

// rows creates the scene's table, and returns a client that is not recorded.
func (s *stage) rows(ctx context.Context) *client {
	c := s.client("")
	s.create(ctx,
		func(ctx context.Context) error { _, err := tables.CreateTable(ctx, c.table(), nil); return err },
		func(ctx context.Context) error { _, err := tables.DeleteTable(ctx, c.table(), nil); return err })
	return c
}
