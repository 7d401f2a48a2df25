// Package locks is shared by the leases and named locks of package pessimistic and the packages that are built over them.
package locks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// maxBlobName is the service's limit, in characters (REST: "Naming and referencing containers, blobs, and metadata").
const maxBlobName = 1024

// CheckName returns an error if a lock cannot have the name, which becomes a blob's name behind the prefix.
func CheckName(prefix, name string) error {
	if name == "" || len([]rune(prefix+name)) > maxBlobName {
		return fmt.Errorf("lock name %q: must be 1 to %d characters long, prefix included", name, maxBlobName)
	}
	return nil
}

// Slots are several locks of which a call wants any.
type Slots struct {
	Name  string // of all; see Lock
	N     int
	First int             // the number of the one to try first
	Freed <-chan struct{} // this process has released one of them
}

// Lock returns the name of one of the locks.
func (s Slots) Lock(i int) string { return s.Prefix() + strconv.Itoa(i) }

// Prefix returns what the names of all locks begin with.
func (s Slots) Prefix() string { return s.Name + "/slot/" }

// GrantedError is an error of an acquisition that came after the service had granted the lease: it has to be released.
type GrantedError struct{ Err error }

func (e *GrantedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *GrantedError) Unwrap() error { return e.Err }

// Holding is a lease, or a lock, that work is done under.
type Holding interface {
	Context() context.Context
	Release(ctx context.Context) error
}

// Do runs fn under h, and releases h when fn has returned or panicked. If the context of the work or the release ended
// with an error that is lost, the result is one too. Any other error of the release is not the work's: the lease expires
// by itself.
func Do(ctx context.Context, h Holding, lost error, fn func(ctx context.Context) error) error {
	finished := false
	defer func() {
		if !finished { // a panic or runtime.Goexit: release before it continues
			_ = h.Release(ctx)
		}
	}()
	err := fn(h.Context())
	finished = true
	over := context.Cause(h.Context())
	if released := h.Release(ctx); !errors.Is(over, lost) {
		over = released
	}
	switch {
	case !errors.Is(over, lost), errors.Is(err, lost):
		return err
	case err == nil:
		return over
	}
	return fmt.Errorf("%w; the work returned: %w", over, err)
}
