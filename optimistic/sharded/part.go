package sharded

import (
	"cmp"
	"crypto/sha256"
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
	N int64 `json:"n"` // what has been added to this shard
	Layout

	Value noValue `json:"value,omitzero"` // of a Document, which this is then not
}

func (p *Part) layout() *Layout { return &p.Layout }
func (p *Part) blank() bool     { return p.N == 0 }

// Layout is what the first of the shards stores besides its own content. It is empty in the others.
type Layout struct {
	Shards   int  `json:"shards,omitempty"`   // the number of shards
	Deleting bool `json:"deleting,omitempty"` // Delete has begun
}

// Change says what a call has done to the shards of a counter or a document.
type Change struct {
	Changed  bool // it was created, given more shards, or deleted, by this call
	Shards   int  // the number of shards afterwards; after Delete, the number of those that were removed
	Requests int  // requests sent; a read that was repeated after a fault counts once

	_ struct{}
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

// Name returns the name of a shard of a counter or a document. The first, 0, has the name of the whole. Names of the others begin with a
// hash, so that the service, which divides blobs and partitions among its servers by ranges of names, can spread them.
func Name(name string, shard int) string {
	if shard == 0 {
		return name
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", name, shard))
	return fmt.Sprintf("%x-%s-%d", hash[:4], name, shard)
}

// DeletingError means that a Delete of the counter or document has begun and has not ended. Nothing was changed. Delete has to be
// called again if it failed; then Create makes a new one.
type DeletingError struct {
	Op       string
	Resource string

	what string
}

// Error names the counter and the way out.
func (e *DeletingError) Error() string {
	return fmt.Sprintf("%s %s: the %s is being deleted; delete it again if that failed, and then create it", e.Op, e.Resource, cmp.Or(e.what, "counter"))
}

// Unwrap returns optimistic.ErrNotFound: it counts as gone from the moment when its deletion begins.
func (e *DeletingError) Unwrap() error { return optimistic.ErrNotFound }
