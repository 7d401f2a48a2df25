// Package fence provides fencing tokens, which keep an earlier holder of a lock from writing.
//
// A lease cannot stop a holder that does not know that it lost the lease: it may have been paused, or its write may
// have been under way for a minute. The resource can stop it, if every write carries a number that grows with each
// holder, and the resource refuses a number smaller than the largest it has seen. That number is a Token. The check and
// the write must be one conditional request; the code that enforces a Token has to ensure that.
//
// A Token grows over the life of its lock, even if the lock is deleted in between:
//
//	next = max(previous + 1, service's Date in milliseconds)
//
// The Date header has whole seconds, and the +1 makes tokens within one second differ. Two rules keep the sequence
// growing if what stores it is deleted:
//
//   - A token is not given out before the service's clock has reached the token's own second. So every token that was
//     given out before the service's time t is smaller than the next whole second after t.
//   - A holder that finds no previous token, or one that may have been tampered with, takes the next whole second after
//     the last change of what stores it, and waits until the service's clock is there.
//
// Only the service's clock counts, so the holders' clocks do not matter. The remaining risk is a service whose clock
// goes backwards in a failover, or whose front ends disagree about the second. The stored previous token covers that
// for as long as it exists.
//
// Nothing here sends a request.
package fence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Key is the name under which a Token is stored: in a blob's metadata as decimal digits, in an entity as an Int64
// property. It is in lower case, because HTTP does not keep the case of metadata names.
const Key = "azconcfence"

// ErrFenced means that a write was refused because a later holder has written, or has claimed the resource. The write
// was not carried out. The error in the chain is an *Error with both tokens.
var ErrFenced = errors.New("fenced off by a later holder")

// Token is a fencing token. The zero Token means "none" and is smaller than any that is given out.
type Token int64

// Next returns the token that follows previous, at a time of the service's clock. It fails if previous is the largest
// possible token.
func Next(previous Token, service time.Time) (Token, error) {
	if previous == math.MaxInt64 {
		return 0, fmt.Errorf("the stored fence %d is the largest there is: no token can follow it", previous)
	}
	return max(previous+1, Token(service.UnixMilli())), nil
}

// Second returns the second of the service's clock that t belongs to. t must not be given out before that second has
// begun.
func (t Token) Second() time.Time { return time.UnixMilli(int64(t)).Truncate(time.Second) }

// String returns the decimal digits, as stored in metadata.
func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// Parse parses what String returned. The empty string is the zero Token. Anything that is not a positive number is an
// error, and must not be taken for "none", because any holder could then write.
func Parse(s string) (Token, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("the stored fence %q is not a positive number", s)
	}
	return Token(n), nil
}

// Admit returns an *Error if the holder of t must not write to a resource that has stored a token, because the stored
// one is larger. Equal tokens belong to the same holder, which may write any number of times.
func (t Token) Admit(resource string, stored Token) error {
	if stored > t {
		return &Error{Resource: resource, Mine: t, Stored: stored}
	}
	return nil
}

// Error describes a refused write.
type Error struct {
	Resource     string // path of the resource, never its URL
	Mine, Stored Token  // Stored is greater
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: fenced off by a later holder: our fence is %d, the stored one %d", e.Resource, e.Mine, e.Stored)
}

// About returns the path of the resource.
func (e *Error) About() string { return e.Resource }

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return ErrFenced }

// Holder is the holder of a lock that protects writes. A Locker, a shared.RWLock and an election return one, the
// *pessimistic.Hold. Functions that write under a lock take one: blobs.Fenced, tables.TransactOptions, idempotent.Inbox.
type Holder interface {
	// Fence is the holder's token: larger than that of every earlier holder of the same lock.
	Fence() Token

	// Guard returns nil if a write may begin, as far as the holder can know. It is called before each try. After an error the write
	// was not sent, whatever is in the error's chain; if an earlier try may have been applied, a look decides.
	Guard(ctx context.Context) error
}
