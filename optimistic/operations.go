package optimistic

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"
)

// OperationsKey is the name under which the callers' operations are stored, beside LineageKey: the key of a blob's
// metadata, or the name of a string property of a table entity. A resource that nobody writes under an OperationID does
// not have it.
const OperationsKey = "azconcoperations"

// How long an operation is remembered: until so many others have been carried out on the resource, or so much time has
// passed by the clocks of the writers.
const (
	OperationsKept = 256
	OperationAge   = 7 * 24 * time.Hour
)

// operation is one that has been carried out: a hash of what the caller named it, and when, in hours.
type operation struct {
	key  uint64
	hour uint16 // since 1970, modulo 2^16: seven years
}

const operationSize = 8 + 2 // bytes, before base64

// intent is the operation that a write carries out. The zero value is none.
type intent struct {
	key    uint64
	legacy string // what earlier versions of azconc put in the place of the write's id
	given  bool
}

// newIntent names an operation within a scope. One id on a blob's content and on its metadata is two operations.
func newIntent(scope, operationID string) intent {
	if operationID == "" {
		return intent{}
	}
	sum := sha256.Sum256([]byte(scope + "\x00" + operationID))
	whole := sha256.Sum256([]byte(operationID))
	return intent{key: binary.BigEndian.Uint64(sum[:]), legacy: "o" + idEncoding.EncodeToString(whole[:10]), given: true}
}

// scoped is a target on which an operation is not the same as on another target of the same resource.
type scoped interface{ scope() string }

// scopeOf returns the scope of a target, or of the one that it wraps: a Target of a caller that embeds one of this
// package's does not have its unexported methods, and says with Unwrap which one that is.
func scopeOf(target any) string {
	for {
		if t, ok := target.(scoped); ok {
			return t.scope()
		}
		outer, ok := target.(interface{ Unwrap() any })
		if !ok {
			return ""
		}
		target = outer.Unwrap()
	}
}

// performed reports whether the lineage shows that the operation has been carried out.
func (l Lineage) performed(op intent) bool {
	return op.given && (l.Has(op.legacy) || slices.ContainsFunc(l.operations, func(o operation) bool { return o.key == op.key }))
}

// perform returns the lineage with the operation, and without those that have aged.
func (l Lineage) perform(op intent, now time.Time) Lineage {
	hour := hourOf(now)
	kept := make([]operation, 0, len(l.operations)+1)
	if op.given {
		kept = append(kept, operation{op.key, hour})
	}
	for _, o := range l.operations {
		if len(kept) < OperationsKept && o.age(hour) <= OperationAge {
			kept = append(kept, o)
		}
	}
	l.operations = kept
	return l
}

func hourOf(t time.Time) uint16 { return uint16(t.Unix() / 3600) }

// age is how long ago the operation was carried out, at most. One from a clock that is ahead of ours is new.
func (o operation) age(hour uint16) time.Duration {
	if passed := hour - o.hour; passed < 1<<15 {
		return time.Duration(passed) * time.Hour
	}
	return 0
}

// OperationsString encodes the operations in characters that are legal in a header and in a table property. It is empty
// when there are none.
func (l Lineage) OperationsString() string {
	if l.use != nil {
		l.use.operations = true
	}
	b := make([]byte, 0, operationSize*len(l.operations))
	for _, o := range l.operations {
		b = binary.BigEndian.AppendUint64(b, o.key)
		b = binary.BigEndian.AppendUint16(b, o.hour)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseOperations reads what OperationsString wrote. Anything else is no operation.
func parseOperations(s string) []operation {
	if s == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b)%operationSize != 0 {
		return nil
	}
	out := make([]operation, 0, len(b)/operationSize)
	for ; len(b) > 0; b = b[operationSize:] {
		out = append(out, operation{binary.BigEndian.Uint64(b), binary.BigEndian.Uint16(b[8:])})
	}
	return out
}

// begins reports whether writing l over a resource with the lineage before carries out an operation. Such a write is
// sent even if it changes nothing, so that the operation is remembered.
func (l Lineage) begins(before Lineage) bool {
	return len(l.operations) > 0 && !slices.ContainsFunc(before.operations, func(o operation) bool { return o.key == l.operations[0].key })
}
