package blobs

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/retry"
)

// Fenced returns a target for a blob that only the latest holder of a lock can write. Before every write it checks that
// the holder still has the lock. The write stores the holder's fence in the blob's metadata (fence.Key), and is refused
// with ErrFenced if a larger fence is there. The check and the write are one conditional request: if a holder was
// paused between reading and writing, the ETag does not match, and reading again finds the later fence.
//
//	err := locker.Do(ctx, "orders", nil, func(ctx context.Context, h *pessimistic.Hold) error {
//		_, err := optimistic.Update(ctx, blobs.Fenced(h, blobs.NewJSON[Order](client)), change, nil)
//		return err
//	})
//
// The first fenced write excludes earlier holders. To exclude them before there is something to write, update the blob
// without changing it, which stores the fence.
//
// # Limits
//
// The fence binds only the writers that use it with the same lock. A writer without a fence can overwrite the blob, and
// keeps the stored fence only if it keeps the metadata, as Update does. A deletion would forget the fence, so Delete is
// refused; write empty content instead.
//
// Cost: as without a fence. A rerun that finds its operation carried out under an earlier holder stores the fence, for 2 more
// requests; 1 more if the fence is there.
func Fenced[T any](holder fence.Holder, target Blob[T]) optimistic.Target[T] {
	set := maps.Clone(target.Metadata)
	if set == nil {
		set = map[string]string{}
	}
	if holder != nil {
		set[fence.Key] = holder.Fence().String()
	}
	target.Metadata = set
	return fencedTarget[T]{contentTarget[T]{target}, holder}
}

// fencedTarget is the target that Fenced returns. It is read, cached and written like a Blob.
type fencedTarget[T any] struct {
	contentTarget[T]
	holder fence.Holder
}

// Traits implements Target.
func (b fencedTarget[T]) Traits() sealed.Traits {
	traits := b.contentTarget.Traits()
	traits.Held = true
	return traits
}

// Read implements Target: one Get Blob. It returns ErrFenced if a later holder has written.
func (b fencedTarget[T]) Read(ctx context.Context) (*sealed.Version[T], error) {
	v, err := b.contentTarget.Read(ctx)
	if err != nil {
		return nil, err
	}
	return v, b.admit(v)
}

// Prepare implements Target: one Put Blob, after Guard of the holder.
func (b fencedTarget[T]) Prepare(base *sealed.Version[T], value T, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if err := b.admit(base); err != nil { // a Document may have read it long ago
		return protocol.Prepared{}, err
	}
	p, err := b.contentTarget.Prepare(base, value, lineage, c)
	p.Guard = b.holder.Guard
	return p, err
}

// Remove implements Target: it refuses, because a deletion would forget the fence.
func (b fencedTarget[T]) Remove(protocol.State, sealed.Conditions) (protocol.Write, error) {
	return nil, errors.New("a deletion would forget the fence, and let an earlier holder write again: write empty content instead")
}

// admit compares the stored fence with the holder's. It refuses a version that another target has read: such a version
// lacks the metadata, and would look like a blob without a fence.
func (b fencedTarget[T]) admit(v *sealed.Version[T]) error {
	if b.holder == nil {
		return retry.Stop(errors.New("the holder of the fence is nil"))
	}
	carry, ok := sealed.Carried(v).(blobCarry)
	if v.Exists && !ok {
		return retry.Stop(errors.New("the version was not read through the fenced blob, so its fence is not known"))
	}
	stored, err := fence.Parse(carry.metadata[fence.Key])
	if err != nil {
		return retry.Stop(fmt.Errorf("%w: set the blob's metadata to the last token that was stored", err))
	}
	return b.holder.Fence().Admit(b.Resource(), stored)
}
