package protocol

import (
	"bytes"
	"strings"
	"time"
)

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
			entries = append(entries, Entry{ID: id, Base: UnknownBase})
		}
	}
	l := LineageOf(entries...)
	l.Operations = operations
	return l
}

// operationsInPage is the largest number of operations that a page range remembers: 160 of the page's 512 bytes.
const operationsInPage = 12

// PageOf encodes the lineage in at most size bytes, to be stored in a page. The operations, if any, are on a second
// line.
func PageOf(l Lineage, size int) string {
	l.Operations = l.Operations[:min(len(l.Operations), operationsInPage)]
	operations := l.OperationsString()
	if operations != "" {
		operations = "\n" + operations
	}
	return l.Fit(size-len(operations)) + operations
}

// PageLineage decodes a page that PageOf encoded. Any other content is an empty lineage.
func PageLineage(page []byte) Lineage {
	writes, operations, _ := strings.Cut(string(bytes.TrimRight(page, "\x00")), "\n")
	return ParseLineage(writes, operations)
}
