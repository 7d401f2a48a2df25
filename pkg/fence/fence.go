package fence

import (
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
