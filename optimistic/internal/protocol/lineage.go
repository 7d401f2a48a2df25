package protocol

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
// property of a table entity. It has letters only, because proxies drop headers with underscores, and metadata names
// must be C# identifiers.
const LineageKey = "azconclineage"

// Entry is one write in a lineage.
type Entry struct {
	ID   string      // the id of the write
	Base azcore.ETag // the version that the write replaced; empty if the resource did not exist, UnknownBase if not known
}

// UnknownBase is the Base of a write without a condition on a version: last writer wins. It cannot be an ETag.
const UnknownBase azcore.ETag = "?"

// Lineage is the recent history of a resource. It is stored with the content, so reading it costs nothing.
//
// Every azconc writer puts its own entry in front of the entries that it read. Entries are dropped only at the old end,
// so Writes is a history without gaps. That makes absence a proof: if an older entry is there and ours is not, ours was
// never applied. Of the entries dropped from Writes, two kinds are remembered: the first write of all, and the latest
// write of each client, up to clientsKept of them. These prove absence after any number of other writes, unless another
// call of the same client has written since.
//
// Operations are the callers' OperationIDs. They are stored separately from the writes, under OperationsKey, because
// they are kept longer and prove something else.
type Lineage struct {
	Writes     []Entry     // the recent writes, newest first
	Operations []Operation // the operations carried out, newest first

	count   int    // the number of writes since first, inclusive
	first   Entry  // the write that began this lineage
	clients string // marks of the latest writes of clients that are not in Writes, newest first
	dropped int    // the number of marks dropped from clients
	use     *use   // set if the lineage is about to be written; nil if it was read
}

// use records which parts of a lineage a target has encoded in a write.
type use struct {
	writes, operations bool
	baseless           bool // the writes were encoded without their bases
}

// LineageOf returns a lineage of these entries alone, newest first.
func LineageOf(entries ...Entry) Lineage {
	l := Lineage{Writes: entries, count: len(entries)}
	if len(entries) > 0 {
		l.first = entries[len(entries)-1]
	}
	return l
}

// ParseLineage decodes what String and OperationsString encoded. Any other text, including the empty string, is an
// empty lineage: a value that azconc did not write proves nothing, and so leads to an unknown outcome, never to a wrong
// one.
func ParseLineage(writes, operations string) Lineage {
	l := parseWrites(writes)
	l.Operations = parseOperations(operations)
	return l
}

func parseWrites(s string) Lineage {
	if s == "" || strings.ContainsFunc(s, notWritten) {
		return Lineage{}
	}
	entries, rest, summarized := strings.Cut(s, summaryMark)
	writes := make([]Entry, 0, strings.Count(entries, ",")+1)
	// All bases are decoded into one string and sliced from it, because a lineage is parsed on every read.
	var bases strings.Builder
	bases.Grow(len(entries) + 4*cap(writes))
	var ends [maxLineageSize]int
	for p := range strings.SplitSeq(entries, ",") {
		id, base, ok := strings.Cut(p, ".")
		if !ok || !isID(id) || len(writes) == maxLineageSize || !decodeBase(&bases, base) {
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
	l := LineageOf(writes...)
	if summarized && !l.parseSummary(rest) {
		return Lineage{}
	}
	return l
}

// isID reports whether an id can be written before others: behind a comma, a tilde begins the summary.
func isID(id string) bool { return id != "" && id[0] != summaryMark[1] }

// notWritten reports whether String never writes a character. A text with one is foreign, and could not be carried on: no
// header can hold all of them.
func notWritten(c rune) bool { return c < '!' || c > '~' }

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

// Has reports whether Writes has an entry with the id.
func (l Lineage) Has(id string) bool {
	for _, e := range l.Writes {
		if e.ID == id {
			return true
		}
	}
	return false
}

// Push returns the lineage with e in front, and with at most size entries in Writes. It does not change l.
func (l Lineage) Push(size int, e Entry) Lineage {
	keep := min(max(size-1, 0), len(l.Writes))
	out := l
	out.Writes = append(make([]Entry, 0, keep+1), e)
	out.Writes = append(out.Writes, l.Writes[:keep]...)
	if len(l.Writes) == 0 {
		return Lineage{Writes: out.Writes, count: 1, first: e, Operations: l.Operations, use: l.use}
	}
	out.count++
	out.remember(l.Writes[keep:])
	return out
}

// Fit encodes the writes in at most limit bytes. If they do not fit it drops the summary, and then entries at the old
// end. A shorter lineage proves less, but never anything wrong, because a lineage without its first write is not
// compared with one that has it.
func (l Lineage) Fit(limit int) string {
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

// NewWriteID returns a random id for one write by a client. Besides 40 random bits it has 3 characters for the client
// and 5 for the second of the write, from which contending writers estimate their number. These are hints and prove
// nothing. An id is only compared with the few dozen others of one lineage, so collisions do not matter.
func NewWriteID(client uint64) string {
	var b [5]byte
	rand.Read(b[:]) // never fails: crypto/rand crashes the program instead
	return "w" + base32Digits(client, clientDigits) + base32Digits(uint64(time.Now().Unix()), secondDigits) + idEncoding.EncodeToString(b[:])
}

const clientDigits, secondDigits = 3, 5

const idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// base32Digits encodes the low digits of n. All ids have the same length, and those of one client sort by time.
func base32Digits(n uint64, digits int) string {
	b := make([]byte, digits)
	for i := digits - 1; i >= 0; i-- {
		b[i] = idAlphabet[n%32]
		n /= 32
	}
	return string(b)
}

// second decodes the time: seconds modulo 32^5, about a year, which is enough to tell recent from old.
func second(s string) int64 { return int64(digits(s)) }

// digits decodes what base32Digits encoded.
func digits(s string) (n uint64) {
	for _, c := range s {
		n = n*32 + uint64(strings.IndexRune(idAlphabet, c))
	}
	return n
}

// contenders estimates from the recent entries how many clients are writing the resource at the moment. It is 0 if the
// lineage does not show that: if it is empty, old, or by one client only.
//
// If N equally busy clients write n entries, the expected number d of different clients among them is N·(1−(1−1/N)^n);
// contenders solves this for N. If all entries are by different clients, there are either many clients, at least twice
// as many as entries, or a few that take a new name for every write, as processes do that run once. So the estimate
// then begins at 2, and doubles with every conflict that the caller has met.
func (l Lineage) contenders(conflicts int) float64 {
	names := make(map[string]bool, len(l.Writes))
	n := 0
	var newest int64
	for _, e := range l.Writes {
		if len(e.ID) != 1+clientDigits+secondDigits+8 || e.ID[0] != 'w' {
			continue // an operation, or an id in the format of another version
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
	contentionWindow = 10  // seconds: an entry that is older than the newest by more is not by a contender
	clockTolerance   = 300 // seconds: if the newest entry is off by more, contenders makes no estimate
)

const (
	blobETagPrefix, blobETagSuffix   = `"0x`, `"`
	tableETagPrefix, tableETagSuffix = `W/"datetime'`, `'"`
)

// encodeBase shortens an ETag for the lineage. The two forms that the services use lose their fixed parts. Anything
// else is encoded whole in base64, because decoding must return exactly the same ETag.
func encodeBase(e azcore.ETag) string {
	s := string(e)
	switch s {
	case "":
		return "-"
	case string(UnknownBase):
		return "?"
	}
	if digits, ok := between(s, blobETagPrefix, blobETagSuffix); ok && isHex(digits) {
		return digits
	}
	if date, ok := between(s, tableETagPrefix, tableETagSuffix); ok && isEscapedDate(date) {
		return "t" + date
	}
	return "q" + base64.RawURLEncoding.EncodeToString([]byte(s))
}

// between returns what is between prefix and suffix, which may not overlap.
func between(s, prefix, suffix string) (string, bool) {
	s, begins := strings.CutPrefix(s, prefix)
	s, ends := strings.CutSuffix(s, suffix)
	return s, begins && ends
}

// decodeBase appends to b what encodeBase was given.
func decodeBase(b *strings.Builder, s string) bool {
	switch {
	case s == "-":
	case s == "?":
		b.WriteString(string(UnknownBase))
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
		b.WriteString(blobETagPrefix)
		b.WriteString(s)
		b.WriteString(blobETagSuffix)
		return isHex(s)
	}
	return true
}

// isHex reports whether s is non-empty upper-case hexadecimal, the form of the Blob service's ETags. Lower case is not
// accepted, so that the encoding is reversible and cannot be confused with the prefixes t and q.
func isHex(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return s != ""
}

// isEscapedDate reports whether s has only the characters of a date in a table's ETag, whose colons are escaped:
// 2026-01-31T12%3A00%3A00.1234567Z. None of them has a meaning in a lineage.
func isEscapedDate(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && !strings.ContainsRune("%-.:+", c) {
			return false
		}
	}
	return true
}
