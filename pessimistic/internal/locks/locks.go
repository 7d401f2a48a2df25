// Package locks is what package pessimistic and the packages below it share and nobody is promised.
package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
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
	Last  *int          // the number of the one that this process held last, which is likely to be free; negative before the first
	Freed chan struct{} // this process has released one of them

	Waited time.Duration // by the caller, for another lock before these
}

// Lock returns the name of one of the locks.
func (s Slots) Lock(i int) string { return s.Prefix() + strconv.Itoa(i) }

// Gate returns the name of the lock that keeps others from acquiring any of them.
func (s Slots) Gate() string { return s.Name + "/gate" }

// Prefix returns what the names of all locks begin with.
func (s Slots) Prefix() string { return s.Name + "/slot/" }

// These are functions of package pessimistic, which sets them when it is initialised, for package shared: their users are promised
// nothing of them. Their types are those of methods of *pessimistic.Locker, which this package cannot import.
var (
	LockAny   any // func(k *Locker, ctx context.Context, all Slots, opts *LockOptions) (*Hold, int, error)
	LockGate  any // func(k *Locker, ctx context.Context, all Slots, opts *LockOptions) (*Hold, error)
	AwaitNone any // func(k *Locker, h *Hold, all Slots, opts *LockOptions) error
)

// GrantedError is an error of an acquisition that came after the service had granted the lease: it has to be released.
type GrantedError struct{ Err error }

func (e *GrantedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *GrantedError) Unwrap() error { return e.Err }

// ErrNoResource refuses a nil Resource.
var ErrNoResource = errors.New("no resource: the Resource is nil, or was made from a nil client")

// EndedWait is the cause of a context that ended while its caller waited. It says who held the resource then.
type EndedWait struct {
	Held interface {
		error
		About() string
	}
	Err error
}

func (e *EndedWait) Error() string { return e.Held.Error() + ": " + azerr.Summary(e.Err) }

// About returns the path of the resource.
func (e *EndedWait) About() string { return e.Held.About() }

// Unwrap returns the cause alone: the caller gave up, so the error is not that of a lock that is held.
func (e *EndedWait) Unwrap() error { return e.Err }

// Holding is a lease, or a lock, that work is done under.
type Holding interface {
	Context() context.Context
	Release(ctx context.Context) error
}

// Do runs fn under h, which was acquired unless acquired is an error, and releases h when fn has returned or panicked. If the context
// of the work or the release ended with an error that is lost, the result is one too. Any other error of the release is not the
// work's: the lease expires by itself.
func Do[H Holding](ctx context.Context, h H, acquired, lost error, fn func(ctx context.Context, h H) error) (err error) {
	if acquired != nil {
		return acquired
	}
	defer func() { // also after a panic or runtime.Goexit, before it continues
		over := context.Cause(h.Context())
		if released := h.Release(ctx); !errors.Is(over, lost) {
			over = released
		}
		switch {
		case !errors.Is(over, lost), errors.Is(err, lost):
		case err == nil:
			err = over
		default:
			err = fmt.Errorf("%w; the work returned: %w", over, err)
		}
	}()
	return fn(h.Context(), h)
}

// PollDefaults fills the fields that are not set: from 250 ms to 5 s.
func PollDefaults(b retry.Backoff) retry.Backoff {
	b.Base = cmp.Or(b.Base, 250*time.Millisecond)
	b.Cap = max(cmp.Or(b.Cap, 5*time.Second), b.Base)
	return b
}

// Pace draws the intervals between checks of something that another client holds from the upper half of a range that doubles up
// to the cap. Full jitter would start near zero each time, and each check costs a request; and the more the intervals differ, the
// less evenly the waiters are served. It must not be used concurrently.
type Pace struct {
	retry.Backoff
	last time.Duration
}

// Next returns the next interval. Without a Rand, its random numbers are those of ctx.
func (p *Pace) Next(ctx context.Context) time.Duration {
	p.last = min(max(2*p.last, 2*p.Base), p.Cap)
	least := max(p.last/2, p.Base)
	return least + time.Duration(p.In(ctx).Rand()*float64(p.last-least))
}

// The names of a holder's record in the metadata of what it holds. The lease id is not among them, and must never be: a client
// that read it could act as the holder.
const (
	KeyOwner     = "azconcowner"     // the name the holder gave itself, percent-encoded
	KeySince     = "azconcsince"     // when it was acquired, by the service's clock
	KeyHeartbeat = "azconcheartbeat" // of the holder of a file's lease, by the service's clock
)

// MaxOwner is the longest name in bytes. It leaves room in 8 KiB of metadata even when every byte has to be escaped.
const MaxOwner = 512

// OwnName returns the name of this process: "host/pid".
func OwnName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host[:min(len(host), MaxOwner-32)], os.Getpid())
}

// KeptError is the result of work that has left something running, so that what it was done under is not released.
type KeptError struct{ Err error }

func (e *KeptError) Error() string { return fmt.Sprintf("it is kept: %v", e.Err) }

// Unwrap returns the result.
func (e *KeptError) Unwrap() error { return e.Err }

// Keep returns a *KeptError. err may be nil.
func Keep(err error) error { return &KeptError{err} }
