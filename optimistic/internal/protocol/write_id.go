package protocol

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
	"time"
)

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
	prefixDigits = 3 // earlier versions of azconc put the name of the client here
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
// that clock is ahead. ok is false for an id in the format of another version.
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
