package protocol

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// A lineage is stored as its entries, newest first, and a summary of what they do not show:
//
//	id+passed.base,id.base,…,~count~marks~first id~base of the first
//
// "+passed" is left out if it is 0, and the summary if the entries show everything.
const (
	summaryMark = ",~"
	passedMark  = "+"
)

// maxLineageBytes bounds an encoded lineage with marks: it takes less than half of the 8 KB that the service allows for
// metadata.
const maxLineageBytes = 4000

// maxCount bounds the count that is read, so that it can be added to.
const maxCount = 1 << 40

// maxPassed bounds the Passed that is stored.
const maxPassed = 9999

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
		id, passed := cutPassed(id)
		if !ok || !isID(id) || len(writes) == maxLineageSize || !decodeBase(&bases, base) {
			return Lineage{}
		}
		ends[len(writes)] = bases.Len()
		writes = append(writes, Entry{ID: id, Passed: passed})
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

// cutPassed separates the number behind an id. What is not such a number belongs to the id.
func cutPassed(s string) (id string, passed int) {
	id, number, found := strings.Cut(s, passedMark)
	if !found {
		return s, 0 // before Atoi, which allocates its error: most entries have none
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > maxPassed || strconv.Itoa(n) != number {
		return s, 0
	}
	return id, n
}

// isID reports whether an id can be written before others: behind a comma, a tilde begins the summary.
func isID(id string) bool { return id != "" && id[0] != summaryMark[1] }

// notWritten reports whether String never writes a character. A text with one is foreign, and could not be carried on: no
// header can hold all of them.
func notWritten(c rune) bool { return c < '!' || c > '~' }

// String encodes the writes in characters that are legal in a header and in a table property.
func (l Lineage) String() string { return l.Fit(math.MaxInt) }

// Fit encodes the writes in at most limit bytes. If they do not fit, it drops marks and then entries, at the old end. If
// not even one entry and the summary fit, it drops the summary. A shorter lineage proves less, but never anything wrong.
func (l Lineage) Fit(limit int) string {
	size := len(l.marks) + 128 // the summary; its last part is an id and a base
	for _, e := range l.Writes {
		size += len(e.ID) + len(e.Base) + 4
	}
	var b strings.Builder
	b.Grow(min(size, max(limit, 0)))
	for i, e := range l.Writes {
		n := b.Len()
		if i > 0 {
			b.WriteByte(',')
		}
		writeEntry(&b, e)
		if b.Len() > limit { // the entries that came before fit
			short := l
			short.Writes, short.marks = l.Writes[:i], ""
			return short.closed(b.String()[:n], limit)
		}
	}
	entries := b.Len()
	l.writeSummary(&b)
	if whole := b.String(); len(whole) <= limit && (l.marks == "" || len(whole) <= maxLineageBytes) {
		return whole
	}
	return l.closed(b.String()[:entries], limit)
}

// closed adds the summary to the encoded entries. To make room for it, it drops marks and then entries.
func (l Lineage) closed(entries string, limit int) string {
	summary := l.summary()
	if over := len(entries) + len(summary) - min(limit, maxLineageBytes); over > 0 && l.marks != "" {
		l.marks = l.marks[:max(len(l.marks)-(over+markSize-1)/markSize*markSize, 0)]
		summary = l.summary()
	}
	for kept := entries; ; {
		if len(kept)+len(summary) <= limit {
			return kept + summary
		}
		cut := strings.LastIndexByte(kept, ',')
		if cut < 0 {
			return entries
		}
		kept, l.Writes = kept[:cut], l.Writes[:len(l.Writes)-1]
		summary = l.summary()
	}
}

func writeEntry(b *strings.Builder, e Entry) {
	b.WriteString(e.ID)
	if e.Passed > 0 {
		b.WriteString(passedMark)
		b.WriteString(strconv.Itoa(min(e.Passed, maxPassed)))
	}
	b.WriteByte('.')
	encodeBase(b, e.Base)
}

// summary encodes what the entries do not show. It is empty if they show everything.
func (l Lineage) summary() string {
	var b strings.Builder
	l.writeSummary(&b)
	return b.String()
}

func (l Lineage) writeSummary(b *strings.Builder) {
	if n := len(l.Writes); n == 0 || l.count == n && l.marks == "" && l.first.ID == l.Writes[n-1].ID && l.first.Base == l.Writes[n-1].Base {
		return
	}
	b.WriteString(summaryMark)
	b.WriteString(strconv.Itoa(l.count))
	b.WriteByte('~')
	b.WriteString(l.marks)
	b.WriteByte('~')
	b.WriteString(l.first.ID)
	b.WriteByte('~')
	encodeBase(b, l.first.Base)
}

// parseSummary reads what summary wrote after summaryMark.
func (l *Lineage) parseSummary(s string) bool {
	count, s, _ := strings.Cut(s, "~")
	marks, s, _ := strings.Cut(s, "~")
	id, base, _ := strings.Cut(s, "~")
	var first strings.Builder
	first.Grow(len(base) + len(tableETagPrefix+tableETagSuffix))
	n, err := strconv.Atoi(count)
	if err != nil || id == "" || strings.Contains(base, "~") || !decodeBase(&first, base) {
		return false
	}
	if len(marks)%markSize != 0 || len(marks) > marksKept*markSize || strings.Trim(marks, markAlphabet) != "" || n < len(l.Writes)+len(marks)/markSize || n > maxCount {
		return false
	}
	l.count, l.marks, l.first = n, marks, Entry{ID: id, Base: azcore.ETag(first.String())}
	return true
}

const (
	blobETagPrefix, blobETagSuffix   = `"0x`, `"`
	tableETagPrefix, tableETagSuffix = `W/"datetime'`, `'"`
)

// encodeBase appends an ETag to b, shortened for the lineage. The two forms that the services use lose their fixed parts.
// Anything else is encoded whole in base64, because decoding must return exactly the same ETag.
func encodeBase(b *strings.Builder, e azcore.ETag) {
	s := string(e)
	switch s {
	case "":
		b.WriteByte('-')
		return
	case string(UnknownBase):
		b.WriteByte('?')
		return
	}
	if digits, ok := between(s, blobETagPrefix, blobETagSuffix); ok && isHex(digits) {
		b.WriteString(digits)
		return
	}
	if date, ok := between(s, tableETagPrefix, tableETagSuffix); ok && isEscapedDate(date) {
		b.WriteByte('t')
		b.WriteString(date)
		return
	}
	b.WriteByte('q')
	b.WriteString(base64.RawURLEncoding.EncodeToString([]byte(s)))
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
	for i := range len(s) { // a byte beyond ASCII is neither
		if c := s[i]; (c < '0' || c > '9') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return s != ""
}

// isEscapedDate reports whether s has only the characters of a date in a table's ETag, whose colons are escaped:
// 2026-01-31T12%3A00%3A00.1234567Z. None of them has a meaning in a lineage.
func isEscapedDate(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', c == '%', c == '-', c == '.', c == ':', c == '+':
		default:
			return false
		}
	}
	return true
}
