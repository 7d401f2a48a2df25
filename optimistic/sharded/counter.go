package sharded

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/retry"
)

// Counter is a number that many processes add to, in several shards. Each process adds to one shard, which it chooses at
// random, and changes the shard when others write it as well. Where there are fewer processes than shards, each comes to have
// one of its own, and then an Add costs 1 request.
//
// A Counter remembers its shard, what is in it, and the number of shards. It folds concurrent calls of Add into one write.
// It starts no goroutines that outlive a call, and does not need to be closed. It is safe for concurrent use.
type Counter struct{ s *spread[Part, *Part] }

// NewCounter opens the counter of a name. It sends nothing; the first call of a method finds out how many shards there are.
// It fails if the name, at or an option cannot be used.
func NewCounter(name string, at At, opts *Options) (*Counter, error) {
	s, err := newSpread[Part, *Part]("counter", ErrNoCounter, name, at, opts)
	if err != nil {
		return nil, err
	}
	return &Counter{s}, nil
}

// ErrNoCounter means that there is a resource of the counter's name that is no counter. Nothing was changed.
var ErrNoCounter = errors.New("not a counter")

// Resource names the counter by the path of its first shard, never by URL.
func (c *Counter) Resource() string { return c.s.resource }

// Add adds n, which may be negative, to one of the shards.
//
// A nil error means that n was added exactly once. The errors are those of optimistic.Update: with ErrConflict, ErrNotFound
// and every error but ErrOutcomeUnknown, n was not added. If a shard refuses because others write it all the time, which
// proves that n was not added there, Add turns to another. It never does so while the outcome of a write is open. With
// ErrOutcomeUnknown, Resolve of the *optimistic.UnknownError may decide later. A sum beyond the range of int64 in one shard
// is refused before it is written.
//
// The counts in the Result are those of the whole write, which may have added the numbers of other calls as well: see Folded.
//
// Cost: 1 request if no other process writes the shard; the first Add of a Counter costs 2 more, of which one finds out the
// number of shards, or 1 more if that is known. Concurrent calls share these requests. Adding 0 costs nothing. A conflict
// costs as much as one of Update, and once in 10 s another request, for the number of shards.
func (c *Counter) Add(ctx context.Context, n int64) (optimistic.Result, error) {
	if n == 0 {
		return optimistic.Result{}, nil
	}
	return c.s.change(ctx, "add", func(_ context.Context, shard int, p *Part) error {
		if n > 0 && p.N > math.MaxInt64-n || n < 0 && p.N < math.MinInt64-n {
			return retry.Stop(fmt.Errorf("add %s: shard %d holds %d, and %d more is beyond the range of int64; add numbers of the other sign first, or count in a larger unit", c.s.resource, shard, p.N, n))
		}
		p.N += n
		return nil
	})
}

// Total is the sum of a counter.
type Total struct {
	Value    int64
	Shards   int // the number of shards
	Requests int // the number of reads; those that were repeated after a fault count once

	_ struct{}
}

// Get returns the sum of the shards. It reads them one by one, in parallel, so the sum is not that of one moment:
//
//   - Every Add that returned nil before Get was called is in the sum, whatever process made it, and also if it was to a
//     shard that was added since this Counter last looked.
//   - No Add that began after Get returned is in the sum.
//   - Each Add that was under way meanwhile is in the sum or not, independently of the others: a later one may be, and an
//     earlier one not. An Add with an unknown outcome is under way until it is decided.
//
// If no number is negative, sums do not fall from one Get to the next that begins after it, also between processes. If
// every number is 1, each sum is one that the counter has had during Get.
//
// The error is optimistic.ErrNotFound if there is no counter, or if it is being deleted, and also if one of
// its shards is missing, which its text then names. Cost: 1 request for each shard; as many again if it was deleted and created with fewer
// since this Counter last looked. Get is safe for concurrent use.
func (c *Counter) Get(ctx context.Context) (Total, error) {
	parts, reads, err := c.s.all(ctx, "get")
	if err != nil {
		return Total{}, err
	}
	var sum big.Int // which may leave the range of int64 on the way
	for _, p := range parts {
		sum.Add(&sum, big.NewInt(p.N))
	}
	if !sum.IsInt64() {
		return Total{}, fmt.Errorf("get %s: the sum, %v, is beyond the range of int64; add numbers of the other sign until it is not", c.s.resource, &sum)
	}
	return Total{Value: sum.Int64(), Shards: len(parts), Requests: reads}, nil
}

// Create creates the counter with so many shards, 1 to MaxShards, and the value 0. If the counter exists, Create changes
// nothing and reports its shards: two processes may create it, and one may do so again. The other shards are created before
// the first, which makes the counter: if Create fails, there is no counter, and calling it again completes it.
//
// The error is ErrNoCounter if there is a resource of that name that is no counter, or one of a shard's name that is not
// empty; *DeletingError if Delete has not ended; and otherwise one of optimistic.Create.
//
// Cost: 1 request if the counter exists, otherwise 1 more than there are shards. A counter that is not used costs nothing
// but its storage.
func (c *Counter) Create(ctx context.Context, shards int) (Change, error) {
	return c.s.create(ctx, shards)
}

// Grow raises the number of shards, to at most MaxShards, while the counter is in use: nobody has to stop. If it has as
// many, Grow changes nothing and reports its shards; the number is never lowered. Other processes add to the new shards when
// they next meet a conflict, at most 10 s later; until then they stay right. Get sees the new shards at once.
//
// The new shards are created before the number is raised. If Grow fails, the number is as before, and calling it again
// completes it. Errors are those of Create and Update; optimistic.ErrNotFound if there is no counter.
//
// Cost: 1 request if there are as many, otherwise 3 more than there are new shards.
func (c *Counter) Grow(ctx context.Context, shards int) (Change, error) { return c.s.grow(ctx, shards) }

// Delete deletes the counter with its shards. Numbers that are added meanwhile are lost with it. First it marks the counter,
// so that it counts as gone, then it removes the shards, and the first of them last. If Delete fails, calling it again
// completes it.
//
// The error is optimistic.ErrNotFound if there is no counter, ErrNoCounter if the resource of that name is none, and
// otherwise one of Update and optimistic.Delete. Cost: 2 requests more than there are shards.
func (c *Counter) Delete(ctx context.Context) (Change, error) { return c.s.remove(ctx) }
