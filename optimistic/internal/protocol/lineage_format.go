package protocol

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
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

// maxWrites bounds the entries that are read: more are foreign.
const maxWrites = 128

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
	for p := range strings.SplitSeq(entries, ",") {
		id, text, _ := strings.Cut(p, ".")
		id, passed := cutPassed(id)
		base, ok := decodeBase(text)
		if !ok || !isID(id) || len(writes) == maxWrites {
			return Lineage{}
		}
		writes = append(writes, Entry{ID: id, Base: base, Passed: passed})
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
		return s, 0
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
	for {
		entries := l.entries()
		whole, room := entries+l.summary(), limit
		if l.marks != "" {
			room = min(limit, maxLineageBytes)
		}
		switch over := len(whole) - room; {
		case over <= 0:
			return whole
		case l.marks != "":
			l.marks = l.marks[:max(len(l.marks)-(over+markSize-1)/markSize*markSize, 0)]
		case len(l.Writes) > 1:
			l.Writes = l.Writes[:len(l.Writes)-1]
		case len(entries) <= limit:
			return entries
		default:
			return ""
		}
	}
}

func (l Lineage) entries() string {
	texts := make([]string, len(l.Writes))
	for i, e := range l.Writes {
		passed := ""
		if e.Passed > 0 {
			passed = passedMark + strconv.Itoa(min(e.Passed, maxPassed))
		}
		texts[i] = e.ID + passed + "." + encodeBase(e.Base)
	}
	return strings.Join(texts, ",")
}

// summary encodes what the entries do not show. It is empty if they show everything.
func (l Lineage) summary() string {
	if n := len(l.Writes); n == 0 || l.count == n && l.marks == "" && l.first.ID == l.Writes[n-1].ID && l.first.Base == l.Writes[n-1].Base {
		return ""
	}
	return summaryMark + strconv.Itoa(l.count) + "~" + l.marks + "~" + l.first.ID + "~" + encodeBase(l.first.Base)
}

// parseSummary reads what summary wrote after summaryMark.
func (l *Lineage) parseSummary(s string) bool {
	count, s, _ := strings.Cut(s, "~")
	marks, s, _ := strings.Cut(s, "~")
	id, base, _ := strings.Cut(s, "~")
	first, ok := decodeBase(base)
	n, err := strconv.Atoi(count)
	if err != nil || id == "" || !ok {
		return false
	}
	if len(marks)%markSize != 0 || len(marks) > marksKept*markSize || strings.Trim(marks, markAlphabet) != "" || n < len(l.Writes)+len(marks)/markSize || n > maxCount {
		return false
	}
	l.count, l.marks, l.first = n, marks, Entry{ID: id, Base: first}
	return true
}

// noBase is the encoding of an empty Base.
const noBase = "-"

func encodeBase(base string) string { return cmp.Or(base, noBase) }

// decodeBase decodes what encodeBase returned.
func decodeBase(s string) (base string, ok bool) {
	switch s {
	case noBase:
		return "", true
	case string(UnknownBase):
		return s, true
	}
	return s, len(s) == baseSize && strings.Trim(s, markAlphabet) == ""
}

// maxTagValue is the largest number of characters in a tag's value (REST: "Set Blob Tags").
const maxTagValue = 256

// operationsInTag is the largest number of operations that a lineage tag remembers: 105 of its 256 characters.
const operationsInTag = 7

// TagLineage encodes a lineage as the value of a tag: the operations, and the ids of as many writes as fit. The bases
// are omitted, because azconc itself computes the versions of tags, and the newest write of the base is proof enough.
func TagLineage(l Lineage) string {
	parts := make([]string, 0, len(l.Writes)+operationsInTag)
	size := -1
	for _, o := range l.Operations[:min(len(l.Operations), operationsInTag)] {
		part := string(appendBase32([]byte{'o'}, o.Key, operationDigits))
		size += 1 + len(part)
		parts = append(parts, part)
	}
	for _, e := range l.Writes {
		if size += 1 + len(e.ID); size > maxTagValue {
			break
		}
		parts = append(parts, e.ID)
	}
	return strings.Join(parts, ".")
}

const operationDigits = 13 // 64 bits

// ParseTagLineage decodes what TagLineage encoded. Any other text is an empty lineage.
func ParseTagLineage(value string) Lineage {
	var entries []Entry
	var operations []Operation
	for id := range strings.SplitSeq(value, ".") {
		switch {
		case len(id) < 10 || id[0] != 'w' && id[0] != 'o' || strings.Trim(id, idAlphabet) != "":
			return Lineage{}
		case id[0] == 'o' && len(id) == 1+operationDigits:
			operations = append(operations, Operation{Key: digits(id[1:]), hour: hourOf(time.Now())}) // they do not age
		default:
			entries = append(entries, Entry{ID: id, Base: Over(UnknownBase)})
		}
	}
	l := LineageOf(entries...)
	l.Operations = operations
	return l
}
