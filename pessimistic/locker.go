package pessimistic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

// Locker provides named locks in a container. Each lock is an empty blob, created on first use and kept after release,
// because it stores the fence; Hold.Remove deletes it. The holder of a lock holds the lease of its blob and records its name and its fence in
// the blob's metadata, but never the lease id.
//
// A Locker promises that at any time at most one Hold of a name has a Context that has not ended (with the exceptions
// listed at Lease), and that each Hold has a larger Fence than every earlier one, even if the lock blob was deleted or
// its metadata replaced in between. A fence may repeat or be smaller only if the service's clock goes backwards, or
// differs between its front ends, by a second; if another client restores, within that second, the complete record of
// an earlier holder, and the next holder is a process that has not held the lock since; or with QuickFirst.
//
// Processes that wait sign up beside the lock, and are served in that order as far as possible; see Lock. That is not a
// promise: the lease alone decides. Nor does a Locker promise that a write which was sent in time arrives in time.
// Against late writes, pass Hold.Fence to the resource being written, and have it refuse a fence smaller than the
// largest it has seen.
//
// Goroutines that wait for the same name in the same Locker form a queue: one of them talks to the service, and when
// its work is done it hands the lease over to the next, with a new fence. See LockerOptions.HandOvers.
//
// A Locker is safe for concurrent use. It starts no goroutines other than those of the leases it has granted.
type Locker struct {
	client   *container.Client
	path     string
	opts     LockerOptions
	timing   timing
	lines    lines
	answered atomic.Bool // the service has answered at least once
}

// LockerOptions configures a Locker. The zero value selects the defaults.
type LockerOptions struct {
	// Owner is the name under which this process appears to waiters. Defaults to "host/pid".
	Owner string

	// Prefix is prepended to each lock name to form the blob name, so that locks can share a container with other
	// blobs. Defaults to none.
	Prefix string

	// Duration, Poll, Tries and Health are those of AcquireOptions. The intervals between two looks follow the lock's turns, as
	// far as its record tells how long they last: they are up to Poll.Cap, and near the end of a turn shorter than Poll.Base.
	Duration time.Duration
	Poll     retry.Backoff
	Tries    int
	Health   func(context.Context) error

	// TakeoverDelay is how long a new holder waits, holding the lock, if the previous holder did not release it:
	// requests which that holder sent while it held the lock may still be under way. Writes that carry a fence do not
	// need the delay; for others 15 s is usual. Defaults to none.
	TakeoverDelay time.Duration

	// HandOvers bounds how many times in a row a lock is handed over from one goroutine to the next within this Locker,
	// first come, first served, before other processes get a chance. Hand-overs also stop once the lock has been held
	// for the duration of a lease, and when half of that has passed without a renewal. The next goroutine holds the lock
	// under the same lease id, with a new fence. A negative value disables hand-overs. Defaults to 100.
	HandOvers int

	// AtLeast is the minimum time a lock is held even if the work takes less: Release waits until then, or until its
	// ctx ends. It keeps a job that several machines start at the same time, by clocks that differ, from running on
	// each of them in turn. Defaults to none.
	AtLeast time.Duration

	// AllowContent allows a lock on a blob that has content, which is otherwise refused with a *ContentError. The
	// content stays as it is: the blob's lease is acquired, so that nobody can write without the lease id, and its
	// metadata holds the holder's record; GC never deletes such a blob. Defaults to false.
	AllowContent bool

	// QuickFirst gives the first holder of a new lock blob its fence at once, instead of waiting for the next second of
	// the service's clock. If the blob was deleted within that second, the fence may be one that an earlier holder had, or
	// smaller. It is meant for large numbers of locks, such as one per key of a once.Once, each of which is needed once. Defaults
	// to false.
	QuickFirst bool

	// Hooks observe the Locker's operations and leases: see AcquireOptions.Hooks. Defaults to none.
	Hooks observe.Hooks

	clockJump func() time.Duration // see remote

	_ struct{}
}

// LockOptions configures one acquisition. The zero value selects the defaults.
type LockOptions struct {
	// MaxWait bounds how long Lock waits for another holder. Defaults to Infinite: no bound but ctx.
	MaxWait time.Duration

	// NoWait returns a *HeldError at once if another client holds the lock. MaxWait then bounds only the retries after
	// transient faults. Defaults to false.
	NoWait bool

	// Patient retries transient faults even if MaxWait is not set and the service has never answered: a call during an
	// outage cannot be distinguished from one with a wrong address, and is given up after LockerOptions.Tries
	// otherwise. Defaults to false.
	Patient bool

	_ struct{}
}

// NewLocker returns a Locker for the locks in a container, which must exist by the time of the first lock. It sends no
// request.
func NewLocker(client *container.Client, opts *LockerOptions) (*Locker, error) {
	k := &Locker{client: client, opts: ptr.Value(opts)}
	if client == nil {
		return nil, errors.New("no container client")
	}
	k.path = resource.Path(client.URL())
	if k.opts.TakeoverDelay < 0 || k.opts.TakeoverDelay > time.Minute {
		return nil, fmt.Errorf("LockerOptions.TakeoverDelay: %v is not in 0…60s", k.opts.TakeoverDelay)
	}
	if k.opts.AtLeast < 0 {
		return nil, fmt.Errorf("LockerOptions.AtLeast: %v is negative", k.opts.AtLeast)
	}
	k.opts.HandOvers = cmp.Or(k.opts.HandOvers, 100)
	if len(k.opts.Owner) > locks.MaxOwner {
		return nil, fmt.Errorf("LockerOptions.Owner: %d bytes, more than the maximum of %d", len(k.opts.Owner), locks.MaxOwner)
	}
	k.opts.Owner = cmp.Or(k.opts.Owner, locks.OwnName())
	k.opts.Duration = cmp.Or(k.opts.Duration, defaultDuration)
	k.opts.Poll = locks.PollDefaults(k.opts.Poll)
	k.opts.Tries = cmp.Or(k.opts.Tries, defaultTries)
	var err error
	if k.timing, err = timingOf(k.opts.Duration); err != nil {
		return nil, fmt.Errorf("LockerOptions.%w", err)
	}
	k.lines.handOvers, k.lines.most = k.opts.HandOvers, k.timing.duration
	if k.timing.infinite() {
		k.lines.most = defaultDuration
	}
	return k, nil
}

// Options returns the Locker's options, with the defaults in place of what was not set.
func (k *Locker) Options() LockerOptions { return k.opts }

// With returns another Locker for the same locks, whose options are those of k after change. It has a queue of its own: see
// LockerOptions.HandOvers.
func (k *Locker) With(change func(*LockerOptions)) (*Locker, error) {
	o := k.opts
	change(&o)
	return NewLocker(k.client, &o)
}

// Lock waits until it holds the lock. It returns a *HeldError when MaxWait has passed, ErrNotFound if the container does
// not exist, a *ContentError, the cause of ctx, or the service's error. On any error nothing is left behind, as with
// Acquire, with one exception: with a TakeoverDelay, the lease of a failed takeover may be left to expire, so that the
// next holder does not mistake the lock for a released one.
//
// A call that finds the lock held, or free while others are known to wait, signs up in the append blob
// "<lock>.azconc-waiters" and lets those before it go first, the dead ones for less than a second each as a rule, and for 5 s or three
// quarters of MaxWait in all. If it gives up it takes its ticket back; a ticket of a process that was killed delays the others once. If
// it cannot sign up, for lack of a right for example, it waits without an order. With NoWait it does not sign up, and leaves a free lock
// to waiters for less than a second.
//
// The Hold's Context derives from ctx. The caller must call Release.
//
// Transient faults are retried for as long as the call may wait; see LockerOptions.Tries. If the lease is broken, or
// the blob deleted, before the caller holds the lock, the call goes on waiting and reports no error.
//
// The first holder of a new lock blob waits until the service's Date header shows a later second than that of the blob's
// creation: otherwise its fence could equal one that was granted before the blob was deleted. The header lags by up to two
// seconds, as recorded responses show; the wait is 1.5 s on average, and up to 2.1 s, or 3 s if this machine's clock is
// wrong. The next holder after another client has changed the blob waits as well, and a holder that gets an earlier Date
// than the last one did waits for up to a second: Date went back by a second now and then. See LockerOptions.QuickFirst.
//
// Requests: 3 if the lock exists and is free (look, acquire, stamp), 4 the first time, and 2 if this Locker has released it
// within 0.1 s and nobody has acquired it since; then 1 to release, 2 if it was waited
// for or held for 0.1 s, and 3 if others have signed up whom the record does not name. Waiting costs 1 to sign up, 3 the first time, 1
// more to give up, up to 3 within 0.1 s of a holder's first sight, and one HEAD request per look, however many goroutines of this Locker
// wait. Taking over from another goroutine of this Locker costs 1 (stamp), and handing over costs none.
func (k *Locker) Lock(ctx context.Context, name string, opts *LockOptions) (*Hold, error) {
	a, err := k.newAcquisition(ctx, name, opts)
	if err != nil {
		return nil, err
	}
	return k.lock(ctx, a)
}

func (k *Locker) lock(ctx context.Context, a *acquisition) (h *Hold, err error) {
	ctx, end := a.claim.remote.start(ctx, "Lock")
	defer func() { end(err) }()
	handed, err := k.lines.enter(ctx, a)
	if err != nil {
		return nil, err
	}
	h, err = a.hold(ctx, handed)
	if err != nil && !a.passed {
		a.queue.place.leave(ctx)
		a.queue.line.leave(ctx, err, a.claim.remote.now(), false)
	}
	return h, err
}

// TryLock is Lock without waiting. If another client holds the lock, it returns a *HeldError, normally after 1 request;
// if a goroutine of this Locker holds the lock or waits for it, it sends no request.
func (k *Locker) TryLock(ctx context.Context, name string) (*Hold, error) {
	return k.Lock(ctx, name, &LockOptions{NoWait: true})
}

// Do locks, runs fn, and releases the lock when fn has returned. Errors are those of the package's Do.
func (k *Locker) Do(ctx context.Context, name string, opts *LockOptions, fn func(ctx context.Context, h *Hold) error) error {
	h, err := k.Lock(ctx, name, opts)
	return locks.Do(ctx, h, err, ErrLost, fn)
}

// TableLock returns the name of the lock of a table, or, if partition is not empty, of that partition. Tables have no
// leases, so a named lock stands in for them (Microsoft's "Managing concurrency in Azure Storage" describes this for
// tables). TableLock sends no request.
//
// The lock alone binds only the clients that acquire it, and does not stop a holder that was paused. It becomes safe
// when every access is a transaction that carries the holder's fence, which the table itself then enforces:
//
//	name, err := locker.TableLock("orders", "")
//	err = locker.Do(ctx, name, nil, func(ctx context.Context, h *pessimistic.Hold) error {
//		_, err := tables.Transact(ctx, orders, "eu", change, &tables.TransactOptions{Holder: h})
//		return err
//	})
//
// The fence is stored in each partition, with the first such transaction there. Choose either one lock per table or one
// per partition: their fences are not comparable, so a write under one may be refused because of the other.
func (k *Locker) TableLock(table, partition string) (name string, err error) {
	if table == "" {
		return "", errors.New("table lock: no table")
	}
	name = "table/" + table
	if partition != "" {
		name += "/" + url.PathEscape(partition)
	}
	_, err = k.blob(name)
	return name, err
}

// Path returns the path of a lock's blob, with container and prefix, which is unique in the account. It sends no
// request.
func (k *Locker) Path(name string) string { return k.path + "/" + k.opts.Prefix + name }

func (k *Locker) blob(name string) (*blockblob.Client, error) {
	if err := locks.CheckName(k.opts.Prefix, name); err != nil {
		return nil, err
	}
	return k.client.NewBlockBlobClient(k.opts.Prefix + name), nil
}
