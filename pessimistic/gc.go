package pessimistic

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/ptr"
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
	Orphans  int // blobs in which others had signed up for a lock that is gone: deleted, or in a dry run those that would have been
	Requests int
}

// gcAtOnce is the number of concurrent deletions.
const gcAtOnce = 8

// GC deletes the blobs of locks that are no longer used. It is optional: an idle lock costs nothing but its place in a
// list.
//
// GC deletes only empty blobs that azconc created as locks: neither a blob with data on which a lock was allowed
// (LockerOptions.AllowContent), nor a lock blob of a version that did not mark the blobs it created. A deletion is conditional on
// the version that was listed and carries no lease id, so the service refuses it if the lock is held, or was held since.
//
// It also deletes the blobs in which others have signed up for a lock that does not exist, if nobody has for as long: a waiter that
// was killed while the lock was removed has left them.
//
// The fence continues to grow, because a new one starts from the service's clock; a lock whose fence is ahead of that clock is
// kept.
//
// Errors: those of List, and the first refusal of a deletion; what was deleted before is counted. Requests: those of List, 1 for
// the clock, 2 per lock that is deleted, and 1 per blob of a lock that is gone.
func (k *Locker) GC(ctx context.Context, opts *GCOptions) (GCResult, error) {
	o := ptr.Value(opts)
	o.Unused = cmp.Or(o.Unused, 7*24*time.Hour)
	if o.Unused < time.Minute { // the next holder may still need the record of the last one
		return GCResult{}, fmt.Errorf("GCOptions.Unused: %v is less than 1m", o.Unused)
	}
	c := &collection{k: k, o: o, remote: k.remoteOf(NewContainer(k.client))}
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
	var before []string // the locks with whose names what follows begins
	for one, err := range c.k.blobs(ctx, c.remote, c.o.Prefix, listTry) {
		if err != nil {
			if refused := group.Wait(); refused != nil {
				return refused // the reason the list was cut off
			}
			return err
		}
		before = slices.DeleteFunc(before, func(name string) bool { return !strings.HasPrefix(one.name, name) })
		of, tickets := strings.CutSuffix(one.name, waitersSuffix)
		switch {
		case one.lock:
			before = append(before, one.name)
			c.consider(ctx, group, infoOf(one.name, one.seen))
		case tickets && one.grew && strings.HasPrefix(of, c.o.Prefix) && !slices.Contains(before, of) && c.now.Sub(one.seen.Modified) >= c.o.Unused:
			group.Go(func() error { return c.removeOrphan(ctx, one) })
		}
	}
	return group.Wait()
}

func (c *collection) consider(ctx context.Context, group *errgroup.Group, info LockInfo) {
	c.count(&c.res.Seen)
	switch {
	case !info.own:
		c.count(&c.res.Foreign)
	case info.Held:
		c.count(&c.res.Held)
	case c.now.Sub(info.Modified) < c.o.Unused || info.Fence >= fence.Token(c.now.UnixMilli()):
		c.count(&c.res.Recent)
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

// remove deletes one lock blob at the version that was listed, and before it the blob in which its waiters signed up, which nobody
// would look for afterwards. A blob that has been deleted or acquired meanwhile is not a failure, and does not count as deleted,
// unless a response to this deletion was lost.
func (c *collection) remove(ctx context.Context, info LockInfo) error {
	name, ambiguous := c.k.opts.Prefix+info.Name, false
	_, err := c.erase(ctx, name+waitersSuffix, blob.ModifiedAccessConditions{IfUnmodifiedSince: &c.now}) // nobody has begun to wait
	if err == nil || azerr.Has(err, "BlobNotFound") {
		ambiguous, err = c.erase(ctx, name, blob.ModifiedAccessConditions{IfMatch: &info.ETag})
	}
	switch o := azerr.Classify(err); {
	case err == nil, ambiguous && o.Kind == azerr.NotFound:
		c.deleted(info)
	case o.Kind == azerr.Held:
		c.count(&c.res.Held)
	case o.Kind == azerr.NotFound, o.Kind == azerr.Conflict:
		c.count(&c.res.Recent)
	default:
		return azerr.Op("delete", c.k.Path(info.Name), err)
	}
	return nil
}

// removeOrphan deletes a blob of tickets whose lock is gone, unless another process has signed up since.
func (c *collection) removeOrphan(ctx context.Context, one listed) (err error) {
	if !c.o.DryRun {
		_, err = c.erase(ctx, c.k.opts.Prefix+one.name, blob.ModifiedAccessConditions{IfMatch: &one.seen.ETag})
	}
	switch o := azerr.Classify(err); {
	case err == nil, o.Kind == azerr.NotFound:
		c.count(&c.res.Orphans)
	case o.Kind != azerr.Held && o.Kind != azerr.Conflict:
		return azerr.Op("delete", c.k.Path(one.name), err)
	}
	return nil
}

// erase deletes a blob on a condition. ambiguous reports that it may have been deleted although err is not nil.
func (c *collection) erase(ctx context.Context, name string, condition blob.ModifiedAccessConditions) (ambiguous bool, err error) {
	w := c.remote
	w.path = c.k.path + "/" + name
	sent, err := w.wire().Send(ctx, "Delete Blob", adminAgain(adminTry), func(ctx context.Context) error {
		_, err := c.k.client.NewBlobClient(name).Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &condition}})
		return err
	})
	return sent.Ambiguous > 0, err
}

func (c *collection) count(what *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*what++
}
