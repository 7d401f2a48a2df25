package fence

import (
	"context"
)

// Holder writes under a lock. *pessimistic.Hold is one.
type Holder interface {
	// Fence is the holder's token: larger than that of every earlier holder of the same lock.
	Fence() Token

	// Guard returns nil if a write may begin, as far as the holder can know.
	Guard(ctx context.Context) error
}
