package fence

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Key is the name under which a Token is stored: in a blob's metadata as decimal digits, in an entity as an Int64
// property. Lower case, because names of metadata do not keep their case on the way.
const Key = "azconcfence"

// ErrFenced says that a write was refused because a later holder has written, or has claimed the resource. It was not
// carried out. The error in the chain is an *Error with both tokens.
var ErrFenced = errors.New("fenced off by a later holder")

// Token is a fencing token. The zero Token is smaller than any that was given out: it stands for "none".
type Token int64

// Next returns the token that follows previous, at a time of the service's clock. It fails when previous is the largest
// number that a token can be.
func Next(previous Token, service time.Time) (Token, error) {
	if previous == math.MaxInt64 {
		return 0, fmt.Errorf("the stored fence %d is the largest there is: no token can follow it", previous)
	}
	return max(previous+1, Token(service.UnixMilli())), nil
}

// Second returns the second of the service's clock that t belongs to: t must not be given out before it has begun.
func (t Token) Second() time.Time { return time.UnixMilli(int64(t)).Truncate(time.Second) }

// String returns the decimal digits, the form in metadata.
func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// Parse reads what String wrote. An empty text is the zero Token. A text that is not a positive number is an error and
// must not be taken for "none": a writer that did so would let anybody in.
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

// Admit tells whether the holder of t may write to a resource that has stored a token: it may not when the stored one
// is newer. Equal tokens are the same holder, who may write as often as he likes.
func (t Token) Admit(resource string, stored Token) error {
	if stored > t {
		return &Error{Resource: resource, Mine: t, Stored: stored}
	}
	return nil
}

// Error is a refusal in full.
type Error struct {
	Resource     string // path of what was to be written, never its URL
	Mine, Stored Token  // Stored is greater
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: fenced off by a later holder: our fence is %d, the stored one %d", e.Resource, e.Mine, e.Stored)
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return ErrFenced }
