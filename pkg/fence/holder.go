package fence

import (
	"context"
)

// Holder is the holder of a lock that protects writes. A Locker, a shared.RWLock and an election return one, the
// *pessimistic.Hold. Functions that write under a lock take one: blobs.Fenced, tables.TransactOptions, idempotent.Inbox.
type Holder interface {
	// Fence is the holder's token: larger than that of every earlier holder of the same lock.
	Fence() Token

	// Guard returns nil if a write may begin, as far as the holder can know.
	Guard(ctx context.Context) error
}
