package sharded

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/optimistic"
)

// Document is a value that many processes change, in several shards: a histogram, a set that grows, the latest of many
// reports. Each process changes one shard, and Get merges all. What a Counter does with sums, a Document does with any
// type that has a merge: a change sees and changes what is in one shard, never the whole.
//
// Processes find shards of their own as those of a Counter do. A Document remembers its shard, what is in it, and the number
// of shards. It folds concurrent calls of Update into one write. It starts no goroutines that outlive a call, and does not
// need to be closed. It is safe for concurrent use.
type Document[T any] struct {
	s     *spread[Share[T], *Share[T]]
	merge func(a, b T) T
}

// Share is what a document stores under each of its names, as the JSON content of a blob. An entity has no nested values.
type Share[T any] struct {
	Value *T `json:"value,omitempty"` // nil before the first change of this shard
	Layout

	N noNumber `json:"n,omitzero"` // of a Counter, which this is then not
}

func (s *Share[T]) layout() *Layout { return &s.Layout }
func (s *Share[T]) blank() bool     { return s.Value == nil }

// ErrNoDocument means that there is a resource of the document's name that is no sharded document. Nothing was changed.
var ErrNoDocument = errors.New("not a sharded document")

// NewDocument opens the document of a name. at makes the target of a name, as for a Counter.
//
// merge returns what two shards are together, and may reuse the memory of both. The shards have no order, and
// one process may change several in the course of time, so merge must not depend on the order or on which
// changes were made together: it must be commutative and associative.
//
// NewDocument sends nothing; the first call of a method reads how many shards there are. It fails if the name, at, merge or
// an option cannot be used.
func NewDocument[T any](name string, at func(name string) optimistic.Target[Share[T]], merge func(a, b T) T, opts *Options) (*Document[T], error) {
	if merge == nil {
		return nil, errors.New("document: merge is nil; give the function that merges two shards")
	}
	s, err := newSpread[Share[T], *Share[T]]("document", ErrNoDocument, name, at, opts)
	if err != nil {
		return nil, err
	}
	return &Document[T]{s, merge}, nil
}

// Resource names the document by the path of its first shard, never by URL.
func (d *Document[T]) Resource() string { return d.s.resource }

// Update changes what is in one of the shards. change gets the content of that shard, or the zero value if nothing has been put
// there, and is called again after a conflict, possibly for another shard. It may decide by the content of its shard only as
// far as that makes no difference to the merged value: in another process, or later in this one, the shard is another.
//
// A nil error means that the change was applied exactly once. The errors are those of optimistic.Update: with ErrConflict,
// ErrNotFound, an error of change, and every other but ErrOutcomeUnknown, nothing was changed. If a shard refuses because
// others write it all the time, which proves that nothing was changed there, Update turns to another, and never while the
// outcome of a write is open. With ErrOutcomeUnknown, Resolve of the *optimistic.UnknownError may decide later.
//
// Cost: 1 request if no other process writes the shard; the first Update of a Document costs 2 more, of which one reads the
// number of shards, or 1 more if that is known. Concurrent calls share these requests, and the Result is that of the
// whole write: see Folded. A conflict costs as much as one of optimistic.Update, and once in 10 s another request, for the
// number of shards.
func (d *Document[T]) Update(ctx context.Context, change func(ctx context.Context, shard *T) error) (optimistic.Result, error) {
	if change == nil {
		return optimistic.Result{}, fmt.Errorf("update %s: change is nil; give the function that changes a shard", d.s.resource)
	}
	return d.s.change(ctx, "update", func(ctx context.Context, _ int, s *Share[T]) error {
		v := s.Value
		if v == nil {
			v = new(T)
		}
		if err := change(ctx, v); err != nil {
			return err
		}
		s.Value = v
		return nil
	})
}

// Merged is the value of a document.
type Merged[T any] struct {
	Value    T   // the zero value if nothing was put into any shard
	Shards   int // the number of shards
	Requests int // the number of reads; those that were repeated after a fault count once

	_ struct{}
}

// Get returns the merged content of the shards. It reads them one by one, in parallel, so the value is not that of one
// moment:
//
//   - Every Update that returned nil before Get was called is in the value, whatever process made it, and also if it was in
//     a shard that was added since this Document last looked.
//   - No Update that began after Get returned is in the value.
//   - Each Update that was under way meanwhile is in the value or not, independently of the others.
//
// The error is optimistic.ErrNotFound if there is no document, or if it is being deleted, and ErrNoDocument if the resource of
// that name is something else. The cost is that of Counter.Get.
func (d *Document[T]) Get(ctx context.Context) (Merged[T], error) {
	parts, reads, err := d.s.all(ctx, "get")
	if err != nil {
		return Merged[T]{}, err
	}
	all := Merged[T]{Shards: len(parts), Requests: reads}
	some := false
	for _, p := range parts {
		switch {
		case p.Value == nil:
		case !some:
			all.Value, some = *p.Value, true
		default:
			all.Value = d.merge(all.Value, *p.Value)
		}
	}
	return all, nil
}

// Create creates the document with so many shards, 1 to MaxShards, and nothing in them. If it exists, Create changes nothing
// and reports its shards. What is left after a failure, the errors and the cost are those of Counter.Create, with ErrNoDocument
// for ErrNoCounter.
func (d *Document[T]) Create(ctx context.Context, shards int) (Change, error) {
	return d.s.create(ctx, shards)
}

// Grow raises the number of shards while the document is in use, like Counter.Grow, at the same cost.
func (d *Document[T]) Grow(ctx context.Context, shards int) (Change, error) {
	return d.s.grow(ctx, shards)
}

// Delete deletes the document with its shards, like Counter.Delete, at the same cost. Changes that are made meanwhile are lost
// with it.
func (d *Document[T]) Delete(ctx context.Context) (Change, error) { return d.s.remove(ctx) }
