package pessimistic

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
)

// LockInfo is the state of a named lock, as any client can see it. It describes the moment when the service answered,
// and may be outdated: use it for display, and never as a reason to believe that a lock is free.
type LockInfo struct {
	Name  string
	Held  bool        // the lease is held, or being broken
	State lease.State // of the lease

	// Owner, Fence, Since and Duration are those of the last stamp: the holder's if Held, otherwise the previous
	// holder's. In the moment between an acquisition and its stamp, they are still the previous holder's, and so they
	// are while a program that does not use azconc holds the lease. The latter can be detected only if that lease is
	// infinite and the last holder's was not, or the reverse: then Owner and Since are empty, and Duration is Infinite
	// or 0.
	Owner    string
	Fence    fence.Token
	Since    time.Time     // by the service's clock
	Duration time.Duration // of the lease; Infinite if it does not expire

	// Waiting is how many have signed up, as far as the last holder knew. Some may have given up since: see Locker.Waiters.
	Waiting int

	ETag     azcore.ETag // identifies this acquisition: Break with it as IfMatch affects no later one
	Observed time.Time   // the service's clock when it answered, up to 2 s behind Modified's; zero in a list: use Modified there
	Modified time.Time   // when the last stamp was written

	own bool // azconc has created the blob, and it is empty
}

// infoOf returns what a lock blob says about its lock.
func infoOf(name string, seen lease.Observation) LockInfo {
	r := recordOf(seen)
	return LockInfo{
		own: r.own && seen.Size == 0, Name: name, Held: !seen.State.Free(), State: seen.State,
		Owner: r.owner, Fence: r.fence, Since: r.since, Duration: r.duration, Waiting: int(r.order.waiting()),
		ETag: seen.ETag, Observed: seen.Date, Modified: seen.Modified,
	}
}

// Show returns who holds a lock, or who held it last. Errors: ErrNotFound if there is no such lock, which includes a
// lock that was never used and one that was garbage-collected; *azerr.OpError. Requests: 1, retried after transient faults.
func (k *Locker) Show(ctx context.Context, name string) (LockInfo, error) {
	w, err := k.remote(name)
	if err != nil {
		return LockInfo{}, err
	}
	ctx, end := w.start(ctx, "Show")
	seen, err := w.lookAtLock(ctx, "show")
	end(err)
	if err != nil {
		return LockInfo{}, err
	}
	return infoOf(name, seen), nil
}

// Waiters returns the names of those who wait for a lock, the next one first. Those who were killed are among them, since nobody knows,
// and those who cannot sign up are not. It names 1,000 at most. Errors: those of Show. Requests: 2, or 3 after a collection.
func (k *Locker) Waiters(ctx context.Context, name string) (names []string, err error) {
	w, err := k.remote(name)
	if err != nil {
		return nil, err
	}
	ctx, end := w.start(ctx, "Waiters")
	defer func() { end(err) }()
	seen, err := w.lookUntil(ctx, "")
	if err == nil {
		var of waiters
		if of, err = k.tickets(w, name).read(ctx, recordIn(seen.Metadata).order.next); azerr.Has(err, "BlobNotFound") {
			err = nil
		}
		for _, one := range of.all {
			names = append(names, one.name)
		}
	}
	return names, azerr.Op("show waiters of", w.path, err)
}

// lookAtLock looks at the blob of a lock, for op. A mistyped name does not address an arbitrary blob as a lock.
func (r remote) lookAtLock(ctx context.Context, op string) (lease.Observation, error) {
	seen, err := r.lookUntil(ctx, "")
	if err == nil && !recordIn(seen.Metadata).lock {
		err = errNotALock
	}
	return seen, azerr.Op(op, r.path, err)
}

var errNotALock = fmt.Errorf("%w: the blob exists, but is not an azconc lock", ErrNotFound)

// remote returns the remote for requests about the blob of a lock.
func (k *Locker) remote(name string) (remote, error) {
	client, err := k.blob(name)
	if err != nil {
		return remote{}, err
	}
	return k.remoteOf(NewBlob(client)), nil
}

func (k *Locker) remoteOf(target Resource) remote {
	w := newRemote(target, k.opts.Hooks)
	w.clockJump, w.answered = k.opts.clockJump, &k.answered
	return w
}

// listTry is the timeout of one request for up to 5,000 blobs and their metadata.
const listTry = 30 * time.Second

// ListOptions configures List. The zero value selects the defaults.
type ListOptions struct {
	// Prefix restricts the list to names that begin with it. Defaults to none.
	Prefix string

	// Held restricts the list to locks that are held. Defaults to false.
	Held bool

	_ struct{}
}

// List iterates over the locks of the container in the order of their names; other blobs are skipped. An error is the
// last pair. Requests: 1 per 5,000 blobs with the prefix.
func (k *Locker) List(ctx context.Context, opts *ListOptions) iter.Seq2[LockInfo, error] {
	o := ptr.Value(opts)
	w := k.remoteOf(NewContainer(k.client))
	return func(yield func(LockInfo, error) bool) {
		ctx, end := w.start(ctx, "List")
		var err error
		defer func() { end(err) }()
		var lock listed
		for lock, err = range k.observed(ctx, w, o.Prefix, listTry) {
			info := infoOf(lock.name, lock.seen)
			if (err != nil || info.Held || !o.Held) && !yield(info, err) {
				return
			}
		}
	}
}

// listed is a blob in a list.
type listed struct {
	name string
	seen lease.Observation // without a Date
	lock bool              // it is that of a lock
	grew bool              // it is an append blob
}

// observed lists the locks whose names begin with prefix.
func (k *Locker) observed(ctx context.Context, w remote, prefix string, try time.Duration) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		for one, err := range k.blobs(ctx, w, prefix, try) {
			if (err != nil || one.lock) && !yield(one, err) {
				return
			}
		}
	}
}

// blobs lists the blobs whose names begin with prefix, in the order of their names.
func (k *Locker) blobs(ctx context.Context, w remote, prefix string, try time.Duration) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		from := container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}}
		if prefix = k.opts.Prefix + prefix; prefix != "" {
			from.Prefix = &prefix
		}
		for more := true; more; more = ptr.Value(from.Marker) != "" {
			var page container.ListBlobsFlatResponse
			_, err := w.wire().Send(ctx, "List Blobs", adminAgain(try), func(ctx context.Context) (err error) {
				// A pager cannot be used after its first error, so every request gets a new one.
				page, err = k.client.NewListBlobsFlatPager(&from).NextPage(ctx)
				return err
			})
			if err != nil {
				yield(listed{}, azerr.Op("list locks in", k.path, err))
				return
			}
			from.Marker = page.NextMarker
			for _, item := range page.Segment.BlobItems {
				if item.Properties != nil && ptr.Value(item.Name) != "" && !yield(k.listed(item), nil) {
					return
				}
			}
		}
	}
}

func (k *Locker) listed(item *container.BlobItem) listed {
	seen := lease.Observation{
		State: lease.State(ptr.Value(item.Properties.LeaseState)), Term: lease.Term(ptr.Value(item.Properties.LeaseDuration)),
		ETag: ptr.Value(item.Properties.ETag), Modified: ptr.Value(item.Properties.LastModified), Metadata: lowered(item.Metadata),
		Size: ptr.Value(item.Properties.ContentLength),
	}
	// A list carries the ETag without the quotes that every other response has.
	if e := seen.ETag; e != "" && e[0] != '"' {
		seen.ETag = `"` + e + `"`
	}
	return listed{(*item.Name)[len(k.opts.Prefix):], seen, recordIn(seen.Metadata).lock, ptr.Value(item.Properties.BlobType) == container.BlobTypeAppendBlob}
}

// BreakResult is the result of Locker.Break.
type BreakResult struct {
	LockInfo               // as it was before the break
	Broken   bool          // false: it was free
	After    time.Duration // after which it can be acquired; up to a second more than is left
}

// Break breaks the lease of a lock that another client holds. The holder notices with its next renewal, within a third
// of its lease's duration. Then its work has to stop, in the time that is left: by default the rest of the lease, so
// that no other client gets in before that. With Now, or with a Grace of less than a third of the holder's duration,
// the holder keeps working while others may acquire the lock: use these only for holders that are known to have
// crashed. Break leaves a free lock as it is, and returns no error.
//
// With IfMatch, the ETag of an acquisition as returned by Show and Hold.ETag, a later acquisition is not affected; by
// default Break breaks the one that it finds. Events go to the Locker's Hooks.
//
// Errors: ErrNotFound; ErrConflict if IfMatch names an acquisition other than the current one; *UnknownError if there
// was no response: calling Break again is safe.
//
// Requests: 2, a look and the break, which is conditional on what the look found; 1 if the lock was free or IfMatch did
// not match; 3 if no second of the lease is left. Between an acquisition and its stamp the new holder cannot be
// distinguished from the previous one; a break in that moment sends the new one back to waiting.
func (k *Locker) Break(ctx context.Context, name string, opts *BreakOptions) (out BreakResult, err error) {
	w, err := k.remote(name)
	if err != nil {
		return BreakResult{}, err
	}
	o, period, err := opts.withDefaults(w.target)
	if err != nil {
		return BreakResult{}, err
	}
	ctx, end := w.start(ctx, "Break")
	defer func() { end(err) }()
	seen, err := w.lookAtLock(ctx, "break")
	if err != nil {
		return BreakResult{}, err
	}
	out.LockInfo = infoOf(name, seen)
	c := o.Conditions
	if c.IfMatch != "" && c.IfMatch != seen.ETag {
		return out, &azerr.OpError{Op: "break", Resource: w.path, Err: fmt.Errorf("%w: acquisition %s is over; the current one is %s by %s",
			ErrConflict, c.IfMatch, seen.ETag, out.Owner)}
	}
	if !out.Held {
		return out, nil
	}
	c.IfMatch = seen.ETag
	out.After, err = breakWithin(ctx, w, period, c)
	if reason := judge(err); reason != 0 && reason != Deleted {
		return out, nil // released or expired in between, or broken by the first try
	}
	if err != nil {
		return out, azerr.Op("break", w.path, err)
	}
	out.Broken = true
	return out, nil
}
