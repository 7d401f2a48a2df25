package optimistic

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"math"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// LineageKey is the name under which the lineage is stored: the key of a blob's metadata, or the name of a string
// property of a table entity. Letters only: proxies drop headers with underscores, and metadata names must be C#
// identifiers.
const LineageKey = "azconclineage"

// Entry is one write in a lineage.
type Entry struct {
	ID   string      // the write, or the caller's operation
	Base azcore.ETag // the version the write replaced; "" when the resource did not exist, unknownBase when not known
}

// unknownBase marks a write that carried no condition on a version: last writer wins. It cannot be an ETag.
const unknownBase azcore.ETag = "?"

// Lineage is the recent history of a resource, newest write first: every azconc writer puts its own entry in front and
// carries on the entries it read. It travels with the content, so reading it costs nothing.
//
// Entries are only ever dropped at the old end. A lineage is therefore always a gapless run of history from the newest
// azconc write back, and that is what makes absence a proof: an entry older than ours with ours missing means ours
// never was.
type Lineage []Entry

// ParseLineage reads what String wrote. Anything else, including the empty string, yields an empty lineage: a foreign
// value proves nothing, and an empty lineage leads to an unknown outcome, never to a wrong one.
func ParseLineage(s string) Lineage {
	if s == "" {
		return nil
	}
	l := make(Lineage, 0, strings.Count(s, ",")+1)
	// All bases are decoded into one string and cut out of it: a lineage is parsed on every read.
	var bases strings.Builder
	bases.Grow(len(s) + 4*cap(l))
	var ends [maxLineageSize]int
	for p := range strings.SplitSeq(s, ",") {
		id, base, ok := strings.Cut(p, ".")
		if !ok || id == "" || len(l) == maxLineageSize || !decodeBase(&bases, base) {
			return nil
		}
		ends[len(l)] = bases.Len()
		l = append(l, Entry{ID: id})
	}
	all, start := bases.String(), 0
	for i := range l {
		l[i].Base = azcore.ETag(all[start:ends[i]])
		start = ends[i]
	}
	return l
}

// String encodes the lineage in characters that are legal in a header and in a table property.
func (l Lineage) String() string {
	var b strings.Builder
	b.Grow(36 * len(l))
	for i, e := range l {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(e.ID)
		b.WriteByte('.')
		b.WriteString(encodeBase(e.Base))
	}
	return b.String()
}

// Has tells whether the write or operation id is in the lineage.
func (l Lineage) Has(id string) bool { return l.index(id) >= 0 }

func (l Lineage) index(id string) int {
	for i, e := range l {
		if e.ID == id {
			return i
		}
	}
	return -1
}

// produced returns the ETag that the write id led to: the base of its successor, or, when it is the newest, the
// resource's current ETag. A writer outside azconc that keeps metadata (one that sets HTTP headers, say) moves the
// current ETag on without an entry; then the result is a later version than the write's own, and still one that
// contains it.
func (l Lineage) produced(id string, current azcore.ETag) azcore.ETag {
	i := l.index(id)
	// Entries of one folded write share their base; the successor is the first one with another base.
	for j := i - 1; j >= 0; j-- {
		if l[j].Base != l[i].Base {
			if l[j].Base == unknownBase {
				return current
			}
			return l[j].Base
		}
	}
	return current
}

// push returns a lineage with the new entries in front, newest first, and at most size entries in total.
func (l Lineage) push(size int, entries ...Entry) Lineage {
	out := make(Lineage, 0, min(size, len(l)+len(entries)))
	out = append(out, entries...)
	for _, e := range l {
		if len(out) >= size {
			break
		}
		out = append(out, e)
	}
	return out[:min(len(out), size)]
}

// fit encodes the lineage, without as many entries at the old end as it takes to stay within limit bytes.
func (l Lineage) fit(limit int) string {
	s := l.String()
	for len(s) > max(limit, 0) {
		s = s[:max(strings.LastIndexByte(s, ','), 0)]
	}
	return s
}

// overlaps tells whether the two lineages share an entry.
func (l Lineage) overlaps(other Lineage) bool {
	for _, e := range other {
		if l.Has(e.ID) {
			return true
		}
	}
	return false
}

var idEncoding = base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding)

// newWriteID returns a fresh id for one write by a client. Besides 40 random bits it says, in 3 and 5 characters, which
// client wrote and in which second, for contenders to learn from. Both are hints: nothing is proved by them, and an id
// is only ever compared with the few dozen others of one lineage, so that a collision is out of the question.
func newWriteID(client uint64) string {
	var b [5]byte
	rand.Read(b[:]) // never fails: crypto/rand crashes the program instead
	return "w" + base32Digits(client, clientDigits) + base32Digits(uint64(time.Now().Unix()), secondDigits) + idEncoding.EncodeToString(b[:])
}

const clientDigits, secondDigits = 3, 5

const idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// base32Digits writes the low digits of n, so that the ids have one length and sort by time within a client.
func base32Digits(n uint64, digits int) string {
	b := make([]byte, digits)
	for i := digits - 1; i >= 0; i-- {
		b[i] = idAlphabet[n%32]
		n /= 32
	}
	return string(b)
}

// second reads the time back: seconds modulo 32^5, about a year, which is plenty to tell now from long ago.
func second(digits string) (n int64) {
	for _, c := range digits {
		n = n*32 + int64(strings.IndexRune(idAlphabet, c))
	}
	return n
}

// contenders estimates how many clients are writing the resource at the moment, from whose names the recent entries
// bear. It is 0 when the lineage does not tell: empty, old, or by one client only.
//
// d different names in n entries by N equally busy clients are to be expected when N·(1−(1−1/N)^n) = d. All names
// different means "many": twice the entries.
func (l Lineage) contenders() float64 {
	names := make(map[string]bool, len(l))
	n := 0
	var newest int64
	for _, e := range l {
		if len(e.ID) != 1+clientDigits+secondDigits+8 || e.ID[0] != 'w' {
			continue // a caller's operation, or a writer of another age
		}
		at := second(e.ID[1+clientDigits : 1+clientDigits+secondDigits])
		if n == 0 {
			newest = at
		}
		if newest-at > contentionWindow || at-newest > contentionWindow {
			continue
		}
		n++
		names[e.ID[1:1+clientDigits]] = true
	}
	now := time.Now().Unix() % (1 << (5 * secondDigits))
	d := float64(len(names))
	switch age := now - newest; {
	case d < 2 || age > clockTolerance || age < -clockTolerance:
		return 0
	case len(names) == n:
		return 2 * d
	}
	low, high := d, 1e4
	for range 30 {
		mid := (low + high) / 2
		if mid*(1-math.Pow(1-1/mid, float64(n))) < d {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

const (
	contentionWindow = 10  // seconds: who wrote before the last so many does not contend now
	clockTolerance   = 300 // seconds by which writers' clocks may differ before their entries say nothing about now
)

// operationKey turns a caller's operation id, of any length and alphabet, into a lineage id.
func operationKey(operationID string) string {
	sum := sha256.Sum256([]byte(operationID))
	return "o" + idEncoding.EncodeToString(sum[:10])
}

const tableETagPrefix, tableETagSuffix = `W/"datetime'`, `'"`

// encodeBase shortens an ETag for the lineage. The two forms the services hand out lose their fixed parts; anything
// else is kept whole in base64, because a lineage must give back exactly what it was given.
func encodeBase(e azcore.ETag) string {
	s := string(e)
	switch {
	case s == "":
		return "-"
	case e == unknownBase:
		return "?"
	case strings.HasPrefix(s, `"0x`) && strings.HasSuffix(s, `"`) && isHex(s[3:len(s)-1]):
		return s[3 : len(s)-1]
	case strings.HasPrefix(s, tableETagPrefix) && strings.HasSuffix(s, tableETagSuffix) &&
		!strings.ContainsAny(s[len(tableETagPrefix):len(s)-len(tableETagSuffix)], ",'\""):
		return "t" + s[len(tableETagPrefix):len(s)-len(tableETagSuffix)]
	default:
		return "q" + base64.RawURLEncoding.EncodeToString([]byte(s))
	}
}

// decodeBase appends to b what encodeBase was given.
func decodeBase(b *strings.Builder, s string) bool {
	switch {
	case s == "-":
	case s == "?":
		b.WriteString(string(unknownBase))
	case s == "":
		return false
	case s[0] == 't':
		b.WriteString(tableETagPrefix)
		b.WriteString(s[1:])
		b.WriteString(tableETagSuffix)
	case s[0] == 'q':
		raw, err := base64.RawURLEncoding.DecodeString(s[1:])
		b.Write(raw)
		return err == nil && len(raw) > 0
	default:
		b.WriteString(`"0x`)
		b.WriteString(s)
		b.WriteByte('"')
		return isHex(s)
	}
	return true
}

// isHex reports whether s is non-empty upper-case hexadecimal, as the Blob service writes its ETags. Lower case is not
// accepted, so that the encoding stays reversible to the letter and free of the prefixes t and q.
func isHex(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return s != ""
}
