package optimistic

import (
	"crypto/rand"
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
	ID   string      // the write's
	Base azcore.ETag // the version the write replaced; "" when the resource did not exist, unknownBase when not known
}

// unknownBase marks a write that carried no condition on a version: last writer wins. It cannot be an ETag.
const unknownBase azcore.ETag = "?"

// Lineage is the recent history of a resource. It travels with the content, so reading it costs nothing.
//
// Every azconc writer puts its own entry in front of the writes it read. Entries are only dropped at the old end, so
// Writes is a run of history without gaps, and that is what makes absence a proof: an older entry is there and ours is
// not, so ours was never applied. What drops out of Writes leaves two things behind: the first write of all, and the
// latest write of each client, of which clientsKept are remembered. They prove absence after any number of other writes,
// as long as no other call of the same client has written meanwhile.
//
// The operations are the callers' OperationIDs. They are stored apart from the writes, under OperationsKey, because they
// are kept longer and prove something else.
type Lineage struct {
	Writes []Entry // the recent writes, newest first

	count      int    // writes since first, first included
	first      Entry  // the write that began this lineage
	clients    string // marks of the latest writes of clients that Writes does not hold, newest first
	dropped    int    // marks that clients no longer holds
	operations []operation
	use        *use // of a lineage that is about to be written; nil for one that was read
}

// use records what a target has encoded of a lineage that it was given to write.
type use struct {
	writes, operations bool
	baseless           bool // without the bases of the writes
}

// lineageOf is a lineage that holds only the entries.
func lineageOf(entries ...Entry) Lineage {
	l := Lineage{Writes: entries, count: len(entries)}
	if len(entries) > 0 {
		l.first = entries[len(entries)-1]
	}
	return l
}

// ParseLineage reads what String and OperationsString wrote. Anything else, including the empty string, yields nothing: a
// foreign value proves nothing, which leads to an unknown outcome, never to a wrong one.
func ParseLineage(writes, operations string) Lineage {
	l := parseWrites(writes)
	l.operations = parseOperations(operations)
	return l
}

func parseWrites(s string) Lineage {
	if s == "" {
		return Lineage{}
	}
	entries, rest, summarized := strings.Cut(s, summaryMark)
	writes := make([]Entry, 0, strings.Count(entries, ",")+1)
	// All bases are decoded into one string and cut out of it: a lineage is parsed on every read.
	var bases strings.Builder
	bases.Grow(len(entries) + 4*cap(writes))
	var ends [maxLineageSize]int
	for p := range strings.SplitSeq(entries, ",") {
		id, base, ok := strings.Cut(p, ".")
		if !ok || id == "" || len(writes) == maxLineageSize || !decodeBase(&bases, base) {
			return Lineage{}
		}
		ends[len(writes)] = bases.Len()
		writes = append(writes, Entry{ID: id})
	}
	all, start := bases.String(), 0
	for i := range writes {
		writes[i].Base = azcore.ETag(all[start:ends[i]])
		start = ends[i]
	}
	l := lineageOf(writes...)
	if summarized && !l.parseSummary(rest) {
		return Lineage{}
	}
	return l
}

// String encodes the writes in characters that are legal in a header and in a table property.
func (l Lineage) String() string {
	if l.use != nil {
		l.use.writes = true
	}
	var b strings.Builder
	b.Grow(36*len(l.Writes) + len(l.clients) + 64)
	for i, e := range l.Writes {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(e.ID)
		b.WriteByte('.')
		b.WriteString(encodeBase(e.Base))
	}
	l.writeSummary(&b)
	return b.String()
}

// Has reports whether the write is among the recent ones.
func (l Lineage) Has(id string) bool {
	for _, e := range l.Writes {
		if e.ID == id {
			return true
		}
	}
	return false
}

// push returns a lineage with the entry in front and at most size recent writes.
func (l Lineage) push(size int, e Entry) Lineage {
	keep := min(max(size-1, 0), len(l.Writes))
	out := l
	out.Writes = append(make([]Entry, 0, keep+1), e)
	out.Writes = append(out.Writes, l.Writes[:keep]...)
	if len(l.Writes) == 0 {
		return Lineage{Writes: out.Writes, count: 1, first: e, operations: l.operations, use: l.use}
	}
	out.count++
	out.remember(l.Writes[keep:])
	return out
}

// fit encodes the writes in at most limit bytes: without the summary if it does not fit, and then without as many
// entries at the old end as it takes. What is left out proves less; it never proves wrong, because a lineage that has
// lost its beginning does not compare with one that has it.
func (l Lineage) fit(limit int) string {
	s := l.String()
	if len(s) <= limit {
		return s
	}
	s, _, _ = strings.Cut(s, summaryMark)
	for len(s) > max(limit, 0) {
		s = s[:max(strings.LastIndexByte(s, ','), 0)]
	}
	return s
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
func second(s string) int64 { return int64(digits(s)) }

// digits reads what base32Digits wrote.
func digits(s string) (n uint64) {
	for _, c := range s {
		n = n*32 + uint64(strings.IndexRune(idAlphabet, c))
	}
	return n
}

// contenders estimates how many clients are writing the resource at the moment, from whose names the recent entries
// bear. It is 0 when the lineage does not tell: empty, old, or by one client only.
//
// d different names in n entries by N equally busy clients are to be expected when N·(1−(1−1/N)^n) = d. All names
// different means many clients, twice the entries, or few that take a new name for every write, as processes do that run
// once. So the estimate begins at 2 then, and doubles with every conflict that the caller has met.
func (l Lineage) contenders(conflicts int) float64 {
	names := make(map[string]bool, len(l.Writes))
	n := 0
	var newest int64
	for _, e := range l.Writes {
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
		return min(2*d, math.Ldexp(1, min(conflicts, 16)))
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
