package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/idempotent/internal/session"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// Sessions show the Consumers of a queue whether another one is alive: see "Sessions" in the comment of the package.
//
// A session is the lease of a blob "azconcsession/…", which a Consumer holds while it runs and until its last handler
// has returned. Markers record which session claimed a message, and at which delivery, at no extra request. A session
// that gives up a message without having finished it records that, and nobody waits for it.
//
//	                        requests
//	a Consumer's run        4, and 1 per third of Duration
//	a message               none
//	one redelivered         in addition to Dedupe: 1 to claim it again; 1 to look at the other session; 1 the first
//	                        time it is put back for that
//	one given back          1 if it is not an envelope; 2 if others may have received it meanwhile
//
// Sessions promise that as long as the session of a Consumer is alive and Patience has not passed, no other Consumer
// handles the messages it holds. A delivery that is put back for this reason is not an attempt, and does not count for
// MaxDeliveries. The price is that a message of a crashed process waits until the lease expires, if that is later than
// the end of Visibility.
//
// All Consumers of a queue must have Sessions on the same container: one without Sessions takes over at once, and a
// session in another container always counts as alive.
//
// Sessions are safe for concurrent use, and can be shared by several Consumers, each of which has its own session.
type Sessions struct {
	container *container.Client
	path      string
	o         SessionsOptions
}

// SessionsOptions configures Sessions. The zero value selects the defaults.
type SessionsOptions struct {
	// Duration is how long a session outlives a crash of its process: 15 s to 60 s in whole seconds. It is renewed
	// every third of that. Defaults to 60 s.
	Duration time.Duration

	// Patience bounds how long a message waits, from its first redelivery, for a session that is alive but neither
	// finishes it nor gives it back. After that it is taken over all the same, and a Failed event reports it. By the
	// queue's clock. Defaults to 10 min.
	Patience time.Duration

	// Hooks receive the requests of GC; a Consumer has its own. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// NewSessions returns the sessions in a container, which must exist by the time of Consumer.Run. It sends no request.
func NewSessions(c *container.Client, opts *SessionsOptions) (*Sessions, error) {
	if c == nil {
		return nil, errors.New("no container client")
	}
	var o SessionsOptions
	if opts != nil {
		o = *opts
	}
	o.Duration, o.Patience = cmp.Or(o.Duration, time.Minute), cmp.Or(o.Patience, 10*time.Minute)
	switch {
	case o.Duration < 15*time.Second || o.Duration > time.Minute || o.Duration%time.Second != 0:
		return nil, fmt.Errorf("SessionsOptions.Duration: %v is not in 15s…60s in whole seconds", o.Duration)
	case o.Patience < 0:
		return nil, fmt.Errorf("SessionsOptions.Patience: %v is negative", o.Patience)
	}
	return &Sessions{container: c, path: resource.Path(c.URL()), o: o}, nil
}

// observed returns the same Sessions with other hooks; nil if there are none.
func (k *Sessions) observed(hooks observe.Hooks) *Sessions {
	if k == nil {
		return nil
	}
	o := k.o
	o.Hooks = hooks
	return &Sessions{container: k.container, path: k.path, o: o}
}

// claimer is the session in whose name markers are written, and by which they are interpreted.
type claimer struct {
	*session.Session                  // nil without Sessions
	name             string           // as markers have it; empty without Sessions
	seen             map[string]error // the sessions that were looked at; see living
}

func (c *Consumer) claimer() *claimer {
	by := &claimer{Session: c.session, seen: map[string]error{}}
	if c.session != nil {
		_, by.name = c.session.Current()
	}
	return by
}

// contest decides about a message whose marker names a session: either the message was redelivered, or it is a copy.
// Requests: 1 to look at the session of another Consumer, and 1 the first time that a message waits for it.
func (o *owner) contest(ctx context.Context, by *claimer, target tables.Entity[markers.Marker], v *optimistic.Version[markers.Marker], d *delivery) (decision, error) {
	m := v.Value
	mine := m.Owner == d.m.ID
	if mine && m.Delivery > 0 {
		d.waited = m.Waited + max(0, d.m.Deliveries-m.Delivery-1)
	}
	given := m.Freed == m.Delivery || mine && d.e.Freed == Token{m.Owner, m.Delivery}.String()
	if m.Session == "" || given || mine && by.Ours(m.Session) {
		return run, nil
	}
	alive, asked := by.seen[m.Session]
	if !asked {
		var err error
		if alive, err = o.c.o.Sessions.living(ctx, m.Session); err != nil {
			return undecided, err
		}
		by.seen[m.Session] = alive
	}
	switch {
	case alive == nil:
		return run, nil
	case m.Awaited.IsZero():
		awaited := m
		awaited.Awaited = d.at.UTC()
		_, _ = optimistic.Replace(ctx, target, v, awaited, &optimistic.WriteOptions{SendOptions: o.k.table.Sending(optimistic.SendOptions{})}) // if it fails, patience starts with the next delivery
	case d.at.Sub(m.Awaited) >= o.c.o.Sessions.o.Patience:
		d.overdue = fmt.Errorf("%w: %w", errOverdue, alive)
		return run, nil
	}
	d.holder = alive
	return held, nil
}

// blobOf returns the blob of a session's name in this container, or "" if the name belongs to another container.
func (k *Sessions) blobOf(name string) string {
	blob, ok := strings.CutPrefix(name, k.path+"/")
	if !ok || !strings.HasPrefix(blob, session.Prefix) {
		return ""
	}
	return blob
}

// lookTimeout leaves time for the rest of a claim.
const lookTimeout = send.TryTimeout / 3

// living checks whether a session is alive: alive is nil if it is not, and names its owner if it is. An error means
// that this cannot be known now. Requests: 1.
func (k *Sessions) living(ctx context.Context, name string) (alive, err error) {
	blob := k.blobOf(name)
	if blob == "" {
		return fmt.Errorf("session %s is not in container %s", name, k.path), nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	look := func(ctx context.Context) (seen lease.Observation, err error) {
		err = wire.Observed(k.o.Hooks, name, nil).Once(ctx, "", 0, func(ctx context.Context) (err error) {
			seen, err = pessimistic.Look(ctx, pessimistic.NewBlob(k.container.NewBlobClient(blob)), nil)
			return err
		})
		return seen, err
	}
	seen, err := look(ctx)
	switch {
	case err == nil && seen.State.Free(), send.NoSuchBlob(err):
		return nil, nil
	case err == nil:
		owner, _ := url.PathUnescape(seen.Metadata[session.OwnerKey])
		return fmt.Errorf("session %s of %s is alive", name, cmp.Or(owner, "another")), nil
	}
	return nil, &outage{err: fmt.Errorf("session %s may be alive: %w", name, azerr.Clean(err)), probe: func(ctx context.Context) error {
		if _, err := look(ctx); err != nil && !send.NoSuchBlob(err) {
			return err
		}
		return nil
	}}
}

// errOverdue reports that patience with a session has ended.
var errOverdue = errors.New("it has neither finished the message nor given it back, and is not waited for any longer")

// SessionInfo is a session as List finds it.
type SessionInfo struct {
	Name  string    // of its blob, "azconcsession/…"
	Alive bool      // its lease is held; a session begins, and ends, with a moment in which it is not
	Owner string    // "host/process id" of the Consumer
	Since time.Time // when its blob was created, by the service's clock
}

// List returns the sessions whose blobs exist, in the order of their names. Those of Consumers that have crashed stay until GC
// deletes them, and are not Alive once their lease has expired. It describes the moment when the service answered: use it for
// display. Errors: why blobs cannot be listed. Requests: 1 per 5000 sessions, retried after transient faults.
func (k *Sessions) List(ctx context.Context) (found []SessionInfo, err error) {
	options := &container.ListBlobsFlatOptions{Prefix: to.Ptr(session.Prefix), Include: container.ListBlobsInclude{Metadata: true}}
	for pages := k.container.NewListBlobsFlatPager(options); pages.More(); {
		page, err := send.Page(ctx, wire.Observed(k.o.Hooks, k.path, nil), "List Blobs", pages.NextPage)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", k.path, azerr.Clean(err))
		}
		for _, b := range page.Segment.BlobItems {
			s := SessionInfo{Name: ptr.Value(b.Name)}
			if p := b.Properties; p != nil {
				s.Alive, s.Since = !lease.State(ptr.Value(p.LeaseState)).Free(), ptr.Value(p.LastModified)
			}
			for name, value := range b.Metadata {
				if strings.EqualFold(name, session.OwnerKey) {
					s.Owner, _ = url.PathUnescape(ptr.Value(value))
				}
			}
			found = append(found, s)
		}
	}
	return found, nil
}
