package protocol

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Write sends one request. It returns the ETag that the request produced, or the service's error unchanged. Every call
// sends the identical request.
type Write func(ctx context.Context) (azcore.ETag, error)

// Prepared is the write that a target has encoded.
type Prepared struct {
	Send Write // sends the request; nil if the value equals that of the base, so that there is nothing to write

	// Cramped is the URL of a resource whose metadata leave too little room for a lineage that proves anything; otherwise it
	// is empty.
	Cramped string

	// Guard is that of the Change.
	Guard func(context.Context) error

	// Carry is what a read would carry after the write, for a Document.
	Carry any

	// Stored is what a later look will find of the lineage that the write was to store: all of it, a shortened one, or
	// none. It is the only source of what the write can be recognized by. A write without its entry has an unknown outcome
	// after a lost response, and a conflict is returned without confirmation; one without its operation is refused.
	Stored Lineage
}

// LookFirst wraps a write that does not break its own condition and so can be carried out twice: a repetition may
// overwrite another writer's change made in between. Before each repetition the wrapper looks whether the resource is
// still at base. If it is not, even because of the write itself, the wrapper returns ErrNotMet, and Commit judges the
// write. A change by another writer is then at risk during one request, where a blind repetition puts it at risk during
// a whole pause; a condition that the service checks would leave no risk.
//
// wanted, if not empty, is a version that counts as success, no matter which client wrote it.
func LookFirst(send Write, base State, wanted azcore.ETag, look func(context.Context) (State, error)) Write {
	var sent atomic.Bool
	return func(ctx context.Context) (azcore.ETag, error) {
		if sent.Swap(true) {
			now, err := look(ctx)
			if err != nil {
				return "", err
			}
			if wanted != "" && now.ETag == wanted {
				return wanted, nil
			}
			if now.Exists != base.Exists || now.ETag != base.ETag {
				return "", ErrNotMet
			}
		}
		return send(ctx)
	}
}

// ErrNotMet is the error of a Write that azconc does not send, because the condition does not hold that the service does not
// check. It is a conflict. If no earlier try may have been carried out, nothing was sent, so there is nothing to doubt.
var ErrNotMet = errors.New("it is no longer at the version that the write is based on")

// NewWriteID returns a random id for one write: "w", 15 random bits, the second in 25 bits, and 40 random bits. The second
// is a hint for contending writers and proves nothing. An id is only compared with the few hundred others of one lineage.
func NewWriteID() string {
	var b [7]byte
	rand.Read(b[:]) // never fails: crypto/rand crashes the program instead
	id := append(make([]byte, 0, idSize), 'w')
	id = appendBase32(id, uint64(b[0])<<8|uint64(b[1]), prefixDigits)
	id = appendBase32(id, uint64(time.Now().Unix()), secondDigits)
	return string(idEncoding.AppendEncode(id, b[2:]))
}

const (
	idSize       = 1 + prefixDigits + secondDigits + 8
	prefixDigits = 3
	secondDigits = 5
	yearSeconds  = 1 << (5 * secondDigits) // about a year, after which the seconds begin again
)

const idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

var idEncoding = base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding)

// appendBase32 appends the low digits of n to b.
func appendBase32(b []byte, n uint64, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		b = append(b, idAlphabet[n>>(5*i)%32])
	}
	return b
}

// digits decodes what appendBase32 appended.
func digits(s string) (n uint64) {
	for _, c := range s {
		n = n*32 + uint64(strings.IndexRune(idAlphabet, c))
	}
	return n
}

// age returns how many seconds before now the write with the id was made, by the clock of its writer. It is negative if
// that clock is ahead. ok is false for an id that NewWriteID did not make.
func age(id string, now time.Time) (seconds int64, ok bool) {
	if len(id) != idSize || id[0] != 'w' || strings.Trim(id[1:], idAlphabet) != "" {
		return 0, false
	}
	at := int64(digits(id[1+prefixDigits : 1+prefixDigits+secondDigits]))
	passed := (now.Unix() - at) % yearSeconds
	if passed > yearSeconds/2 {
		passed -= yearSeconds
	}
	return passed, true
}
