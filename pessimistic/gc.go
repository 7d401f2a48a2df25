package pessimistic

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

// GCOptions configures Locker.GC. The zero value selects the defaults.
type GCOptions struct {
	// Prefix restricts GC to names that begin with it. Defaults to none.
	Prefix string

	// Unused is how long ago, at least, a lock must have been acquired last, by the service's clock; at least a minute.
	// Defaults to 7 days.
	Unused time.Duration

	// DryRun reports what would be deleted, and deletes nothing. Defaults to false.
	DryRun bool

	// Each is called with every lock that was deleted, or would be, one at a time. Defaults to none.
	Each func(LockInfo)

	_ struct{}
}

// GCResult counts the locks that GC has seen.
type GCResult struct {
	Seen     int // locks
	Foreign  int // kept: not created by azconc, or not by this version, or has content
	Deleted  int // or, in a dry run, those that would have been
	Held     int // kept: held
	Recent   int // kept: used recently, or while GC was running
	Requests int
}

// gcAtOnce is the number of concurrent deletions.
const gcAtOnce = 8

// GC deletes the blobs of locks that are no longer used. It is optional: an idle lock costs nothing but its place in a
// list.
//
// GC deletes only empty blobs that azconc created as locks: neither a blob with data on which a lock was allowed
// (LockerOptions.AllowContent), nor a lock blob of a version that did not mark the blobs it created. Before a deletion
// it acquires the lease, conditional on the version that was listed, and looks again.
//
// GC never deletes a lock that is held, or that was acquired since it was listed. The fence continues to grow, because
// a new one starts from the service's clock; a lock whose fence is ahead of that clock is kept.
//
// Errors: those of List, and the first refusal of a deletion; what was deleted before is counted. A GC that is killed
// may leave a lease of 15 s. Requests: those of List, 1 for the clock, and 4 per
// deletion.
func (k *Locker) GC(ctx context.Context, opts *GCOptions) (GCResult, error) {
	var o GCOptions
	if opts != nil {
		o = *opts
	}
	o.Unused = cmp.Or(o.Unused, 7*24*time.Hour)
	if err := checkUnused(o.Unused); err != nil {
		return GCResult{}, err
	}
	c := &collection{k: k, o: o, remote: newRemote(NewContainer(k.client), k.opts.Hooks)}
	ctx, end := c.remote.start(ctx, "GC")
	seen, err := c.remote.lookUntil(ctx, "") // at the container, for the service's clock
	if err == nil {
		c.now = seen.Date
		err = c.run(ctx)
	}
	end(err)
	c.res.Requests = int(c.remote.requests.Load())
	if err != nil {
		return c.res, azerr.Op("collect locks in", k.path, err)
	}
	return c.res, nil
}

// collection is one run of GC.
type collection struct {
	k      *Locker
	o      GCOptions
	remote remote
	now    time.Time // by the service's clock

	mu  sync.Mutex // guards res and calls of o.Each
	res GCResult
}

func (c *collection) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(gcAtOnce)
	for info, err := range c.k.list(ctx, c.remote, ListOptions{Prefix: c.o.Prefix}) {
		if err != nil {
			if refused := group.Wait(); refused != nil {
				return refused // the reason the list was cut off
			}
			return err
		}
		c.consider(ctx, group, info)
	}
	return group.Wait()
}

func (c *collection) consider(ctx context.Context, group *errgroup.Group, info LockInfo) {
	c.mu.Lock()
	c.res.Seen++
	recent := c.now.Sub(info.Modified) < c.o.Unused || info.Fence >= fence.Token(c.now.UnixMilli())
	switch {
	case !info.own:
		c.res.Foreign++
	case info.Held:
		c.res.Held++
	case recent:
		c.res.Recent++
	}
	c.mu.Unlock()
	switch {
	case !info.own || info.Held || recent:
	case c.o.DryRun:
		c.deleted(info)
	default:
		group.Go(func() error { return c.remove(ctx, info) })
	}
}

func (c *collection) deleted(info LockInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.res.Deleted++
	if c.o.Each != nil {
		c.o.Each(info)
	}
}

// remove deletes one lock blob, under its lease and at the version that was listed, after checking its content again. A
// blob that has been deleted or acquired meanwhile is not a failure, and does not count as deleted, unless a response
// to this deletion was lost.
func (c *collection) remove(ctx context.Context, info LockInfo) error {
	client := c.k.client.NewBlobClient(c.k.opts.Prefix + info.Name)
	w := newRemote(NewBlob(client), c.remote.hooks)
	w.requests, w.answered = c.remote.requests, c.remote.answered
	o, timing, err := (&AcquireOptions{Duration: minDuration, requests: c.remote.requests}).withDefaults(w.target)
	if err != nil {
		return err
	}
	mine := newClaim(w.target, o, timing)
	mine.remote = w
	_, err = mine.ask(ctx, info.ETag)
	ambiguous, same := false, false
	if err == nil {
		if same, err = c.stillOurs(ctx, w, mine.id, info); err == nil && same {
			if err = c.eraseTickets(ctx, w, info.Name); err == nil {
				ambiguous, err = c.erase(ctx, w, client, mine.id, info.ETag)
			}
		}
	}
	if ambiguous && azerr.Classify(err).Kind == azerr.Conflict {
		// The version is gone: the first try has deleted it, unless a look finds the blob.
		if _, lookErr := w.lookUntil(ctx, ""); lookErr != nil {
			err = lookErr
		}
	}
	switch o := azerr.Classify(err); {
	case err == nil && same, ambiguous && o.Kind == azerr.NotFound:
		c.deleted(info)
		return nil
	case o.Kind == azerr.Held:
		c.count(&c.res.Held)
	case err == nil, o.Kind == azerr.NotFound, o.Kind == azerr.Conflict:
		c.count(&c.res.Recent)
	default:
		err = azerr.Op("delete", w.path, err)
		c.giveBack(ctx, mine, info)
		return err
	}
	c.giveBack(ctx, mine, info)
	return nil
}

// stillOurs looks at the blob under the lease.
func (c *collection) stillOurs(ctx context.Context, w remote, id string, info LockInfo) (same bool, err error) {
	seen, err := w.lookUntil(ctx, id)
	return err == nil && seen.ETag == info.ETag && infoOf(info.Name, seen).own, err
}

// eraseTickets deletes the blob in which waiters sign up, before the lock: nobody would look for it afterwards. A waiter may have died
// before any record told of it.
func (c *collection) eraseTickets(ctx context.Context, w remote, name string) error {
	tickets := c.k.tickets(w, name).Client
	_, err := w.wire().Send(ctx, "Delete Blob", adminAgain(adminTry), func(ctx context.Context) error {
		_, err := tickets.Delete(ctx, nil)
		return err
	})
	if azerr.Classify(err).Kind == azerr.NotFound {
		return nil
	}
	return err
}

// erase deletes the blob. ambiguous reports that it may have been deleted although err is not nil.
func (c *collection) erase(ctx context.Context, w remote, client *blob.Client, id string, etag azcore.ETag) (ambiguous bool, err error) {
	sent, err := w.wire().Send(ctx, "Delete Blob", adminAgain(adminTry), func(ctx context.Context) error {
		_, err := client.Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{
			LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &id},
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag},
		}})
		return err
	})
	return sent.Ambiguous > 0, err
}

// giveBack ends the lease so that the lock looks as it did: after a release, the next holder would believe that the
// previous one ended normally.
func (c *collection) giveBack(ctx context.Context, mine *claim, info LockInfo) {
	if !mine.open {
		return
	}
	if info.State == lease.Expired || info.State == lease.Broken {
		ctx, cancel := retry.Detached(ctx, releaseTime)
		defer cancel()
		_, _ = breakUntil(ctx, mine.remote, 0, ifMatch(info.ETag))
		return
	}
	mine.abandon(ctx)
}

func (c *collection) count(what *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*what++
}
