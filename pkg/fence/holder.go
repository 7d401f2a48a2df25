package fence

import (
	"context"
)

// Holder is whoever holds something that protects its writes. What holds gives one, such as *pessimistic.Hold, which a
// Locker, a shared.RWLock and an election give their holders. What writes under protection takes one: blobs.Fenced,
// tables.TransactOptions.
type Holder interface {
	// Fence is the holder's token: larger than that of every earlier holder of the same lock.
	Fence() Token

	// Guard returns nil if a write may begin, as far as the holder can know.
	Guard(ctx context.Context) error
}
