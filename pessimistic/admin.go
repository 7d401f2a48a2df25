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
	"github.com/azconc/azconc/pkg/retry"
)

// LockInfo is what anybody can see of a named lock. It was true when the service answered, and may be over by now: it is
// for people, and never a reason to believe that a lock is free.
type LockInfo struct {
	Name  string
	Held  bool  // the lease is with somebody, or being broken
	State State // of the lease

	// Owner, Fence, Since and Duration are the last stamp's: the holder's if Held, otherwise those of the one
	// before. In the moment between an acquisition and its stamp they are still the predecessor's, and so they are while
	// a program that does not use azconc has the lease. That can be known only when its lease has no end and the last
	// holder's had one, or the reverse: then Owner and Since are empty, and Duration is Infinite or 0.
	Owner    string
	Fence    fence.Token
	Since    time.Time     // by the service's clock
	Duration time.Duration // of the lease; Infinite if it has no end

	ETag     azcore.ETag // names this acquisition: see BreakLockOptions.IfMatch
	Observed time.Time   // the service's clock when it answered; zero in a list, where Modified has to do
	Modified time.Time   // when the last stamp was written

	own bool // azconc has created the blob, and it is empty
}

// infoOf reads a lock blob.
func infoOf(name string, seen Observation) LockInfo {
	r := seen.record()
	return LockInfo{
		own: r.own && seen.Size == 0, Name: name, Held: !seen.State.Free(), State: seen.State,
		Owner: r.owner, Fence: r.fence, Since: r.since, Duration: r.duration,
		ETag: seen.ETag, Observed: seen.Date, Modified: seen.Modified,
	}
}

// Show tells who holds a lock, or who held it last. Errors: ErrNotFound when there is no such lock, which is also how a
// lock that nobody has ever asked for looks, or one that was collected; *OpError. Requests: 1, sent again after transient
// faults.
func (k *Locker) Show(ctx context.Context, name string) (LockInfo, error) {
	w, err := k.wire(name)
	if err != nil {
		return LockInfo{}, err
	}
	seen, err := k.looksAt(ctx, w)
	if err != nil {
		return LockInfo{}, failedAs(ctx, "show", w.target.path, err)
	}
	if !recordIn(seen.Metadata).lock {
		return LockInfo{}, notALock(w)
	}
	return infoOf(name, seen), nil
}

// notALock keeps whoever mistypes a name from taking any blob for a lock.
func notALock(w wire) error {
	return &OpError{Op: "show", Resource: w.target.path, Err: errNotALock}
}

var errNotALock = fmt.Errorf("%w: the blob is there, but it is not a lock of azconc's", ErrNotFound)

// wire sends requests about the blob of a lock.
func (k *Locker) wire(name string) (wire, error) {
	client, err := k.blob(name)
	if err != nil {
		return wire{}, err
	}
	w := newWire(Blob(client), k.opts.Hooks)
	w.seams, w.heard = k.opts.seams, &k.heard
	return w, nil
}

// looksAt looks until it is answered.
func (k *Locker) looksAt(ctx context.Context, w wire) (seen Observation, err error) {
	err = k.repeat(ctx, adminTry, func(ctx context.Context) error {
		seen, err = w.look(ctx, "")
		return err
	})
	return seen, err
}

// repeat sends a request that may be repeated until it is answered.
func (k *Locker) repeat(ctx context.Context, try time.Duration, send func(context.Context) error) error {
	again := retry.Budget{Attempts: 6, Elapsed: -1, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 5 * time.Second}}.Start()
	for {
		tried, cancel := context.WithTimeout(ctx, try)
		err := send(tried)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if o := azerr.Classify(err); !o.Transient() && !o.Ambiguous() || again.Next(ctx, o.RetryAfter) != nil {
			return err
		}
	}
}

// listTry bounds one request for up to 5,000 blobs and their metadata.
const listTry = 30 * time.Second

// ListOptions tunes List. The zero value is the default.
type ListOptions struct {
	// Prefix restricts the list to names that begin with it. Defaults to none.
	Prefix string

	// Held restricts the list to locks that are held. Defaults to false.
	Held bool

	_ struct{}
}

// List goes through the locks of the container in the order of their names; other blobs are passed over. After an error,
// which is the last pair, there is nothing more. Requests: 1 for every 5,000 blobs with the prefix.
func (k *Locker) List(ctx context.Context, opts *ListOptions) iter.Seq2[LockInfo, error] {
	var o ListOptions
	if opts != nil {
		o = *opts
	}
	w := newWire(Container(k.client), k.opts.Hooks)
	w.heard = &k.heard
	return k.list(ctx, w, o)
}

func (k *Locker) list(ctx context.Context, w wire, o ListOptions) iter.Seq2[LockInfo, error] {
	return func(yield func(LockInfo, error) bool) {
		from := container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}}
		if prefix := k.opts.Prefix + o.Prefix; prefix != "" {
			from.Prefix = &prefix
		}
		for more := true; more; more = deref(from.Marker) != "" {
			var page container.ListBlobsFlatResponse
			err := k.repeat(ctx, listTry, func(ctx context.Context) (err error) {
				ctx, done := w.send(ctx, "list")
				// A pager is of no use after its first error, so every request gets one.
				page, err = k.client.NewListBlobsFlatPager(&from).NextPage(ctx)
				done(err)
				return err
			})
			if err != nil {
				yield(LockInfo{}, failedAs(ctx, "list locks in", k.path, err))
				return
			}
			from.Marker = page.NextMarker
			for _, item := range page.Segment.BlobItems {
				info, ok := k.listed(item)
				if ok && (info.Held || !o.Held) && !yield(info, nil) {
					return
				}
			}
		}
	}
}

// listed reads one blob of a list.
func (k *Locker) listed(item *container.BlobItem) (LockInfo, bool) {
	if item.Properties == nil || deref(item.Name) == "" {
		return LockInfo{}, false
	}
	seen := Observation{
		State: State(deref(item.Properties.LeaseState)), Infinite: string(deref(item.Properties.LeaseDuration)) == infinite,
		ETag: deref(item.Properties.ETag), Modified: deref(item.Properties.LastModified), Metadata: lowered(item.Metadata),
		Size: deref(item.Properties.ContentLength),
	}
	if !recordIn(seen.Metadata).lock {
		return LockInfo{}, false
	}
	// A list carries the ETag without the quotes that every other answer has.
	if e := seen.ETag; e != "" && e[0] != '"' {
		seen.ETag = `"` + e + `"`
	}
	return infoOf((*item.Name)[len(k.opts.Prefix):], seen), true
}

// BreakLockOptions tunes Locker.Break. The zero value ends the lock when it would have run out.
type BreakLockOptions struct {
	// IfMatch is the ETag of the acquisition that is meant, as Show and Held.ETag tell it: whoever has acquired since is
	// not hit. Defaults to the one that Break finds.
	IfMatch azcore.ETag

	// Now and Grace are those of BreakOptions.
	Now   bool
	Grace time.Duration

	_ struct{}
}

// BrokenLock is what a break has met.
type BrokenLock struct {
	LockInfo               // as it was before
	Broken   bool          // false: it was free
	After    time.Duration // for how long nobody can acquire it yet
}

// Break ends somebody else's hold on a lock. The holder finds out with his next renewal, within a third of his lease's
// duration. Then his work has to stop, for which he has the time that is left: the rest of the lease by default, so that
// nobody else comes in before. With Now, and with a Grace of less than a third of his duration, he goes on working while
// others may acquire the lock: that is for holders that are known to have crashed.
// A lock that is free is left as it is, without an error.
//
// Errors: ErrNotFound; ErrChanged when IfMatch names another acquisition than the present one; *UnknownError when no
// answer came: it is harmless to ask again.
//
// Requests: 2, a look and the break, which is on condition of what the look has found; 1 if it was free or another's.
// Between an acquisition and its stamp the new holder cannot be told from the one before; a break in that moment sends
// the new one back to waiting.
func (k *Locker) Break(ctx context.Context, name string, opts *BreakLockOptions) (BrokenLock, error) {
	var o BreakLockOptions
	if opts != nil {
		o = *opts
	}
	w, err := k.wire(name)
	if err != nil {
		return BrokenLock{}, err
	}
	_, period, err := (&BreakOptions{Now: o.Now, Grace: o.Grace}).withDefaults(w.target)
	if err != nil {
		return BrokenLock{}, err
	}
	seen, err := k.looksAt(ctx, w)
	if err != nil {
		return BrokenLock{}, failedAs(ctx, "break", w.target.path, err)
	}
	if !recordIn(seen.Metadata).lock {
		return BrokenLock{}, notALock(w)
	}
	out := BrokenLock{LockInfo: infoOf(name, seen)}
	if o.IfMatch != "" && o.IfMatch != seen.ETag {
		return out, &OpError{Op: "break", Resource: w.target.path, Err: fmt.Errorf("%w: the acquisition %s is over, the present one is %s by %s",
			ErrChanged, o.IfMatch, seen.ETag, out.Owner)}
	}
	if !out.Held {
		return out, nil
	}
	out.After, err = breakUntil(ctx, w, period, seen.ETag)
	if v, reason := judge(err); v == definitive && reason != Deleted {
		return out, nil // released or run out in between, or broken by our first try
	}
	if err != nil {
		return out, failedAs(ctx, "break", w.target.path, err)
	}
	out.Broken = true
	return out, nil
}

// checkUnused refuses what would collect a lock in use.
func checkUnused(d time.Duration) error {
	if d < time.Minute {
		return fmt.Errorf("GCOptions.Unused: %v is less than 1m, in which the next holder may still want to know how the last one ended", d)
	}
	return nil
}
