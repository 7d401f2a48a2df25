package optimistic

import "github.com/azconc/azconc/pkg/fence"

// ErrFenced means that a later holder of the lock has written, or has claimed the resource, and that nothing was
// written. The error in the chain is a *fence.Error with both tokens.
var ErrFenced = fence.ErrFenced
