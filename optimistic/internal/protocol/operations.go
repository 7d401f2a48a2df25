package protocol

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"
)

// OperationsKey is the name under which the callers' operations are stored: the key of a blob's metadata, or the name
// of a string property of a table entity. It is present only if an OperationID was used.
const OperationsKey = "azconcoperations"

// A resource forgets an operation after OperationsKept others, or after OperationAge by the clocks of the writers.
const (
	OperationsKept = 256                // the largest number of operations that a resource remembers
	OperationAge   = 7 * 24 * time.Hour // how long a resource remembers an operation
)

// Operation is an operation that was carried out: a hash of its id, and the time in hours.
type Operation struct {
	Key  uint64 // the first 64 bits of the hash
	hour uint16 // since 1970, modulo 2^16, which is seven years
}

const operationSize = 8 + 2 // bytes, before base64

// Intent is the operation that a write carries out. The zero value is none.
type Intent struct {
	Key   uint64 // that of the Operation
	given bool
}

// NewIntent returns the operation with an id in a scope: the same id on a blob's content and on its metadata is two
// operations. An empty id is no operation.
func NewIntent(scope, operationID string) Intent {
	if operationID == "" {
		return Intent{}
	}
	sum := sha256.Sum256([]byte(scope + "\x00" + operationID))
	return Intent{Key: binary.BigEndian.Uint64(sum[:]), given: true}
}

// Performed reports whether the lineage shows that the operation was carried out.
func (l Lineage) Performed(op Intent) bool {
	return op.given && slices.ContainsFunc(l.Operations, func(o Operation) bool { return o.Key == op.Key })
}

// Perform returns the lineage with op added, and without the operations that are too old at the time now.
func (l Lineage) Perform(op Intent, now time.Time) Lineage {
	if !op.given && len(l.Operations) == 0 {
		return l
	}
	hour := hourOf(now)
	kept := make([]Operation, 0, len(l.Operations)+1)
	if op.given {
		kept = append(kept, Operation{op.Key, hour})
	}
	for _, o := range l.Operations {
		if len(kept) < OperationsKept && o.age(hour) <= OperationAge {
			kept = append(kept, o)
		}
	}
	l.Operations = kept
	return l
}

func hourOf(t time.Time) uint16 { return uint16(t.Unix() / 3600) }

// age returns the time since the operation was carried out, to the hour. If the clock of its writer is ahead of ours,
// the age is 0.
func (o Operation) age(hour uint16) time.Duration {
	if passed := hour - o.hour; passed < 1<<15 {
		return time.Duration(passed) * time.Hour
	}
	return 0
}

// OperationsString encodes the operations in characters that are legal in a header and in a table property. Without
// operations it is empty.
func (l Lineage) OperationsString() string {
	b := make([]byte, 0, operationSize*len(l.Operations))
	for _, o := range l.Operations {
		b = binary.BigEndian.AppendUint64(b, o.Key)
		b = binary.BigEndian.AppendUint16(b, o.hour)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseOperations decodes what OperationsString encoded. Any other text is no operations.
func parseOperations(s string) []Operation {
	if s == "" || strings.ContainsFunc(s, notWritten) { // base64 skips line breaks
		return nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b)%operationSize != 0 {
		return nil
	}
	out := make([]Operation, 0, len(b)/operationSize)
	for ; len(b) > 0; b = b[operationSize:] {
		out = append(out, Operation{binary.BigEndian.Uint64(b), binary.BigEndian.Uint16(b[8:])})
	}
	return out
}

// Begins reports whether the newest operation of l is not in before. A write with a new operation is sent even if it
// changes nothing, so that the operation is remembered.
func (l Lineage) Begins(before Lineage) bool {
	return len(l.Operations) > 0 && !slices.ContainsFunc(before.Operations, func(o Operation) bool { return o.Key == l.Operations[0].Key })
}
