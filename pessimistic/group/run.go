package group

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

const (
	restful   = 5 * time.Second // between two looks of a member that has its parts
	brisk     = time.Second     // and of one that takes parts or lets them go
	listTry   = 10 * time.Second
	atOnce    = 64               // locks that are acquired at the same time; the first time, each takes up to 2 s
	forgotten = 10 * time.Minute // after which the blob of a dead member is deleted
)

// run is a Run in progress.
type run struct {
	*Group
	work Work
	ctx  context.Context
	end  context.CancelCauseFunc

	member  *pessimistic.Hold // nil until this process has become a member for the first time
	joined  bool              // it has seen that it may be one
	seen    sight
	changed time.Time // when the last look differed from the one before
	rests   bool      // this member has what it should have

	slots chan struct{} // full while atOnce locks are being acquired
	all   sync.WaitGroup
}

// Run takes part in the group until ctx ends, and calls work for each part that this member has, in a goroutine of its own. When work
// returns, with or without an error, it is called again after a pause, as long as the part is held. An error marked with retry.Stop
// ends Run, and so does one marked with Keep.
//
// When ctx ends, Run leaves the group, ends the contexts of all work, and releases each part when its work has returned, or when Drain
// has passed. It returns when all work has returned. While work hangs past Drain, this process keeps the parts that it has and is no
// member.
//
// Errors: the cause of ctx, what work has marked with retry.Stop or Keep, ErrMixed, a *ContentError, or the service's refusal while
// this process is no member, such as ErrNotFound if the container does not exist. Transient faults are retried for as long as ctx lasts.
//
// Requests: 4 to become a member and 2 to leave; 1 for a look, every 5 s, or every second while it takes parts or lets them go; 3 for a part that is
// taken, 4 the first time, and 1 or 2 to release it; and renewals of the member's lease and of each part's, every third of the Locker's Duration.
// A member that finds blobs of dead members deletes those that are 10 minutes old, 2 requests for all and 2 for each.
func (g *Group) Run(ctx context.Context, work Work) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r := &run{Group: g, work: work, ctx: ctx, end: end, changed: time.Now(), slots: make(chan struct{}, atOnce)}
	err := r.takePart()
	end(err)
	if r.member != nil {
		_ = r.member.Remove(ctx) // before the work has ended: the others make ready
	}
	r.all.Wait()
	return err
}

// Keep marks the result of work: Run ends with err, and does not release the part, which stays held until the process ends, or until
// the caller releases the Hold. It is meant for work of which something is still running, such as a process that cannot be killed.
func Keep(err error) error { return locks.Keep(err) }

// takePart looks, takes parts and lets them go, until ctx ends.
func (r *run) takePart() error {
	for {
		err := r.join()
		if err == nil || r.joined {
			err = cmp.Or(r.look(), err)
		}
		if err != nil && (!r.passes(err) || r.ctx.Err() != nil) {
			return cmp.Or(context.Cause(r.ctx), err)
		}
		pause := brisk
		if err == nil && r.rests {
			pause = restful
		}
		apart := time.Duration(retry.Random(r.ctx) * float64(pause*3/10)) // so that members do not look together
		if err := retry.Sleep(r.ctx, pause*9/10+apart); err != nil {
			return err
		}
	}
}

// passes reports whether an error may pass by itself. A refusal does as long as the member's lease is held, as during a rotation of keys.
func (r *run) passes(err error) bool {
	if errors.Is(err, ErrMixed) {
		return false
	}
	o := azerr.Classify(err)
	return r.joined && r.member.Valid() || o.Transient() || o.Ambiguous() || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, pessimistic.ErrHeld) || errors.Is(err, pessimistic.ErrLost)
}

// join acquires the member's lock, unless it is held. A member whose work hangs leaves until the work has returned: it cannot take that
// part again, and the others would leave it to this member as its share.
func (r *run) join() error {
	if len(r.tenures((*tenure).hangs)) > 0 {
		if r.member.Valid() {
			_ = r.member.Remove(r.ctx)
		}
		return nil
	}
	if r.member != nil {
		if r.member.Valid() {
			return nil
		}
		_ = r.member.Release(r.ctx)
	}
	h, err := r.Group.member.Lock(r.ctx, r.memberLock(), try)
	if err == nil {
		r.member = h
	}
	return err
}

// try does not wait for another holder. It bounds the retries.
var try = &pessimistic.LockOptions{NoWait: true, MaxWait: 5 * time.Second}

// look looks at the group and begins to move what has to be moved.
func (r *run) look() error {
	ctx, cancel := context.WithTimeout(r.ctx, listTry)
	defer cancel()
	seen, err := look(ctx, r.locker, r.name, r.parts)
	if err != nil {
		return err
	}
	if !r.joined {
		if seen.mixed != nil {
			return seen.mixed
		}
		if r.joined = true; seen.dead > 0 {
			_, _ = r.Group.member.GC(ctx, &pessimistic.GCOptions{Prefix: r.name + "/" + memberPrefix, Unused: forgotten})
		}
	}
	if !reflect.DeepEqual(seen, r.seen) {
		r.seen, r.changed = seen, time.Now()
	}
	own, works := len(r.tenures((*tenure).lasts)), len(r.tenures((*tenure).works))
	share := seen.share(r.id, own)
	switch {
	case own < share:
		r.take(share - own)
	case own > share:
		r.give(own - share)
	}
	// What does not change for long, such as a part that another process holds, is not worth a look every second.
	r.rests = works == share && own == share || time.Since(r.changed) > 2*r.locker.Options().Duration+r.opts.Drain
	return nil
}

// take begins to take free parts, where no other member begins.
func (r *run) take(n int) {
	rank := slices.IndexFunc(r.seen.Members, func(m Member) bool { return m.ID == r.id })
	first := max(rank, 0) * r.parts / max(len(r.seen.Members), 1)
	for i := range r.parts {
		number := (first + i) % r.parts
		if n == 0 {
			return
		}
		if !r.seen.Parts[number].Held && r.begin(number) {
			n--
		}
	}
}

// give ends the work on parts, those that were taken last first.
func (r *run) give(n int) {
	working := r.tenures((*tenure).works)
	slices.SortFunc(working, func(a, b *tenure) int { return b.since.Compare(a.since) })
	for _, t := range working[:min(n, len(working))] {
		t.end(ErrMoved)
	}
}
