package sharded

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/azconc/azconc/optimistic"
)

// MaxShards is the largest number of shards: 1,000 blobs take 500,000 requests a second, more than any account does.
const MaxShards = 1000

// MaxPart bounds the number in one shard, and so in an addition: between -MaxPart and MaxPart. The sum of MaxShards such
// numbers is within the range of int64.
const MaxPart = math.MaxInt64 / MaxShards

// Part is what a counter stores under each of its names. A part can be the JSON content of a blob or the properties of an
// entity.
type Part struct {
	N int64 `json:"n"` // what has been added to this shard

	// The first shard, which has the counter's own name, also stores the following.

	Generation string `json:"generation,omitempty"` // tells this counter from others that had its name before; Create makes it
	Shards     int    `json:"shards,omitempty"`     // the number of shards
	Deleting   bool   `json:"deleting,omitempty"`   // Delete has begun
}

// At returns the target with a name, such as
//
//	func(name string) optimistic.Target[sharded.Part] {
//		return blobs.NewJSON[sharded.Part](container.NewBlockBlobClient(name))
//	}
//
// It must return the same resource for the same name in every process, and different ones for different names. The
// entities of a table have limits of their own only if each is in a partition of its own, so that the name belongs into the
// partition key, of which the service does not allow every character.
type At func(name string) optimistic.Target[Part]

// layout is what the first shard says about all of them.
type layout struct {
	generation string
	shards     int
}

// layoutOf returns the layout in the first shard. It fails unless p is the first shard of a counter that is in use.
func (c *Counter) layoutOf(op string, p *Part) (layout, error) {
	switch {
	case p.Generation == "" || p.Shards < 1 || p.Shards > MaxShards:
		return layout{}, fmt.Errorf("%s %s: %w: it names %d shards of the generation %q", op, c.resource, ErrNoCounter, p.Shards, p.Generation)
	case p.Deleting:
		return layout{}, &DeletingError{Op: op, Resource: c.resource}
	}
	return layout{p.Generation, p.Shards}, nil
}

// maxName keeps the names of the shards within the 1,024 characters that the service allows.
const maxName = 1000

// newGeneration returns a new id for a counter.
func newGeneration() string { return strings.ToLower(rand.Text()[:8]) }

// shardName returns the name of a shard. The first, 0, has the counter's own name. The names of the others have the
// counter's generation in them: what is left of an earlier counter, or of a Create that failed, is under other names, so
// it is not counted, and a late request to such a shard does no harm to the counter there is. They begin with a hash, so that the
// service, which divides blobs and partitions among its servers by ranges of names, can spread them.
func shardName(name, generation string, shard int) string {
	if shard == 0 {
		return name
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", name, generation, shard))
	return fmt.Sprintf("%x-%s-%s-%d", hash[:4], name, generation, shard)
}

// target returns one of the shards. The generation of the first does not matter.
func (c *Counter) target(generation string, shard int) optimistic.Target[Part] {
	return c.at(shardName(c.name, generation, shard))
}

// ErrNoCounter means that there is a resource of the counter's name that is no counter. Nothing was changed.
var ErrNoCounter = errors.New("not a counter")

// ErrIncomplete means that a shard of the counter is missing, with what was in it: it was deleted by other means than
// Counter.Delete. Nothing was changed.
var ErrIncomplete = errors.New("a shard is missing")

// DeletingError means that a Delete of the counter has begun and has not ended. Nothing was changed. Delete has to be
// called again if it failed; then Create makes a new one.
type DeletingError struct {
	Op       string
	Resource string
}

// Error names the counter and the way out.
func (e *DeletingError) Error() string {
	return fmt.Sprintf("%s %s: the counter is being deleted; delete it again if that failed, and then create it", e.Op, e.Resource)
}

// Unwrap returns optimistic.ErrNotFound: it counts as gone from the moment when its deletion begins.
func (e *DeletingError) Unwrap() error { return optimistic.ErrNotFound }
