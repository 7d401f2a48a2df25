package pessimistic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

// Locker gives named locks in a container. Each lock is an empty blob of its own, made when first asked for and kept
// when released, because it remembers the fence. Whoever holds a lock holds the lease of its blob, and has written into
// its metadata who he is and with which fencing token, never the lease's id.
//
// What it promises: at any time at most one Held of a name has a Context that has not ended (with the exceptions of
// Lease), and each Held has a larger Fence than all before it, also when the lock blob was deleted or its metadata
// replaced in between. The exceptions to the latter: the service's clock goes backwards, or differs between its front
// ends, by a second; or somebody puts back, within the second, a whole record of an earlier holder, and the next holder
// is a process that has not held the lock since; or QuickFirst.
//
// Between processes it is fair in the sense that whoever has just had the lock, and has reason to think that others want
// it, lets them have a look before he asks again; see Lock.
//
// What it does not promise: an order between processes, and that a write which was sent in time arrives in time. For the
// latter, hand Held.Fence to what is written to, and let that refuse a smaller one than it has seen.
//
// Goroutines that want the same name from the same Locker stand in line: one of them deals with the service, and when
// it has done its work it passes the lease on, with a new fence. See LockerOptions.HandOvers.
//
// A Locker is safe for concurrent use. It runs no goroutine but those of the leases it has given out.
type Locker struct {
	client *container.Client
	path   string
	opts   LockerOptions
	lines  lines
	heard  atomic.Bool // an answer of the service
}

// LockerOptions tunes a Locker. The zero value is the default.
type LockerOptions struct {
	// Owner is how this process calls itself to those who wait for it. Defaults to "host/pid".
	Owner string

	// Prefix comes before each name to make the blob's, so that locks can share a container with other blobs. Defaults
	// to none.
	Prefix string

	// Duration, Poll, Tries and Health are those of AcquireOptions.
	Duration time.Duration
	Poll     retry.Backoff
	Tries    int
	Health   func(context.Context) error

	// TakeoverDelay is for how long a new holder waits, holding the lock, when the one before did not release it:
	// requests that he sent while the lock was still his may be under way. Writes that carry a fence do not need it;
	// for others 15 s is usual. Defaults to none.
	TakeoverDelay time.Duration

	// HandOvers bounds how often in a row a lock is passed from one goroutine to the next within this Locker, first come,
	// first served, before other processes get a chance; it is also passed on for no longer than a lease lasts. Who is
	// handed the lock holds it under the same lease id and with a fence of his own. Negative turns handing over off.
	// Defaults to 100.
	HandOvers int

	// AtLeast is how long a lock is held even if the work takes less: Release waits until then, or until its ctx ends. It
	// keeps a job that is started at the same time on several machines, by clocks that differ, from running on each in
	// turn. Defaults to none.
	AtLeast time.Duration

	// AllowContent allows a lock on a blob that has content, which is otherwise refused with a *ContentError. Such a blob
	// stays what it is: its lease is taken, so that nobody writes to it without the lease's id, and its metadata carries
	// the record of the holder; GC never deletes it. Defaults to false.
	AllowContent bool

	// QuickFirst gives the first holder of a new lock blob its fence at once, instead of waiting for the next second of
	// the service's clock. The fence may then repeat, if the blob is deleted and made again within a second. It is for
	// locks of which there are many, such as one for each key of an idempotent.Once, and whose blobs nobody but GC
	// deletes. Defaults to false.
	QuickFirst bool

	// Hooks let the program watch. Defaults to silence.
	Hooks Hooks

	seams *seams

	_ struct{}
}

// LockOptions tunes one acquisition. The zero value is the default.
type LockOptions struct {
	// Wait bounds how long Lock waits for another holder. Negative or 0 means no bound but the end of ctx. Defaults to 0.
	Wait time.Duration

	steadfast bool // faults are ridden out although nothing was ever heard of the service

	_ struct{}
}

// NewLocker returns a Locker for the locks in a container, which must exist by the time of the first lock. It sends no
// request.
func NewLocker(client *container.Client, opts *LockerOptions) (*Locker, error) {
	k := &Locker{client: client}
	if opts != nil {
		k.opts = *opts
	}
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
	if len(k.opts.Owner) > maxOwner {
		return nil, fmt.Errorf("LockerOptions.Owner: %d bytes, no more than %d fit", len(k.opts.Owner), maxOwner)
	}
	k.opts.Owner = cmp.Or(k.opts.Owner, ownName())
	if _, err := timingOf(cmp.Or(k.opts.Duration, defaultDuration)); err != nil {
		return nil, fmt.Errorf("LockerOptions.%w", err)
	}
	return k, nil
}

// maxOwner leaves room in a blob's 8 KiB of metadata even when every byte has to be escaped.
const maxOwner = 512

// maxBlobName is the service's limit in characters (REST: "Naming and referencing containers, blobs, and metadata").
const maxBlobName = 1024

func ownName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if len(host) > maxOwner-32 {
		host = host[:maxOwner-32]
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// Lock waits until it has the lock. Errors: *HeldError when Wait was over, ErrNotFound when the container is missing,
// *ContentError, the cause of ctx, or what the service said. On any error nothing is left behind, as with Acquire; with a TakeoverDelay, see
// there, the lease of a failed takeover may be left to run out, so that the next one does not take the lock for clean.
//
// A Locker that has just released the lock waits before it asks again: for as long as it has held, if it has met others
// lately, and for a quarter of that after holding it for a lease's time on end, with Poll.Cap as the limit of both. Such
// a wait ends with Wait.
//
// The Held's Context derives from ctx. The caller must call Release.
//
// Transient faults are ridden out for as long as the call may wait: see LockerOptions.Tries. A lease that is broken, or
// whose blob is deleted, before the lock was the caller's is another wait, and no error. A blob that has content is
// refused with a *ContentError.
//
// The first holder of a new lock blob waits for the next second of the service's clock, up to a second or, if this
// machine's clock is wrong, two: the fence could not be told from one that was given out before a deletion. So does the
// next holder after a change of the blob by others within the same second. See LockerOptions.QuickFirst.
//
// Requests: 3 if the lock exists and is free (look, acquire, stamp), 4 for the first time ever; then 1 to release.
// Waiting costs one HEAD per look, however many goroutines of this Locker wait. Being handed the lock costs 1 (stamp),
// and handing it over none.
func (k *Locker) Lock(ctx context.Context, name string, opts *LockOptions) (*Held, error) {
	return k.lock(ctx, name, opts, true)
}

// TryLock is Lock without waiting: when somebody else holds the lock, it returns a *HeldError, after 1 request if he has
// held it for longer than a moment, and without any if it is a goroutine of this Locker that holds it or waits for it.
func (k *Locker) TryLock(ctx context.Context, name string) (*Held, error) {
	return k.lock(ctx, name, nil, false)
}

// Do locks, runs fn, and releases when fn has returned. Errors are as with the package's Do.
func (k *Locker) Do(ctx context.Context, name string, opts *LockOptions, fn func(ctx context.Context, h *Held) error) error {
	h, err := k.Lock(ctx, name, opts)
	if err != nil {
		return err
	}
	return doHolding(ctx, h, func(ctx context.Context) error { return fn(ctx, h) })
}

// bears tells whether a call that waits should bear with a fault: see claim.next.
func (k *Locker) bears(err error, o LockOptions) bool {
	return (o.Wait > 0 || o.steadfast || k.heard.Load()) && azerr.Classify(err).Transient()
}

// Path is the path of a lock's blob, container and prefix included, by which it differs from all other locks of the account.
// No request is sent.
func (k *Locker) Path(name string) string { return k.path + "/" + k.opts.Prefix + name }

// blob is the lock blob of a name.
func (k *Locker) blob(name string) (*blockblob.Client, error) {
	full := k.opts.Prefix + name
	if name == "" || len([]rune(full)) > maxBlobName {
		return nil, fmt.Errorf("lock name %q: not 1 to %d characters with the prefix", name, maxBlobName)
	}
	return k.client.NewBlockBlobClient(full), nil
}
