package sharded

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/azconc/azconc/optimistic"
)

// MaxShards is the largest number of shards: 1,000 blobs take 500,000 requests a second, more than any account does.
const MaxShards = 1000

// maxName keeps the names of the shards within the 1,024 characters that the service allows.
const maxName = 1000

// Part is what a counter stores under each of its names. The first part, under the counter's own name, has the number of
// shards as well. A part can be the JSON content of a blob or the properties of an entity.
type Part struct {
	N        int64 `json:"n"`                  // what has been added to this shard
	Shards   int   `json:"shards,omitempty"`   // the number of shards, in the first part only
	Deleting bool  `json:"deleting,omitempty"` // in the first part: Delete has begun
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

// Name returns the name of a counter's shard. The first, 0, has the counter's own name. Names of the others begin with a
// hash, so that the service, which divides blobs and partitions among its servers by ranges of names, can spread them.
func Name(counter string, shard int) string {
	if shard == 0 {
		return counter
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", counter, shard))
	return fmt.Sprintf("%x-%s-%d", hash[:4], counter, shard)
}

func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("counter: the name has %d bytes; it must have 1 to %d", len(name), maxName)
	}
	return nil
}

func checkShards(shards int) error {
	if shards < 1 || shards > MaxShards {
		return fmt.Errorf("counter: %d shards; give 1 to %d", shards, MaxShards)
	}
	return nil
}

// check returns an error unless p is the first part of a counter that is in use.
func (c *Counter) check(op string, p Part) error {
	switch {
	case p.Deleting:
		return &DeletingError{Op: op, Resource: c.resource}
	case p.Shards < 1 || p.Shards > MaxShards:
		return fmt.Errorf("%s %s: %w: it names %d shards", op, c.resource, ErrNoCounter, p.Shards)
	}
	return nil
}

// ErrNoCounter means that there is a resource of the counter's name that is no counter. Nothing was changed.
var ErrNoCounter = errors.New("not a counter")

// DeletingError means that a Delete of the counter has begun and has not ended. Nothing was changed. Delete has to be
// called again if it failed; then Create makes a new counter.
type DeletingError struct {
	Op       string
	Resource string
}

// Error names the counter and the way out.
func (e *DeletingError) Error() string {
	return fmt.Sprintf("%s %s: the counter is being deleted; delete it again if that failed, and then create it", e.Op, e.Resource)
}

// Unwrap returns optimistic.ErrNotFound: the counter counts as gone from the moment when its deletion begins.
func (e *DeletingError) Unwrap() error { return optimistic.ErrNotFound }
