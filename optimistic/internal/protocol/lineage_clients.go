package protocol

import (
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// clientsKept bounds how many clients that are not in Writes a lineage remembers, in 512 bytes.
const clientsKept = 64

// summaryMark begins the summary in an encoded lineage: what its entries do not show.
//
//	,~count~dropped~clients~first id~base of the first
const summaryMark = ",~"

// mark identifies one write of a client in eight characters: three for the client and five from the write's random
// part. It is empty for an id that NewWriteID did not make.
func mark(id string) string {
	if len(id) != 1+clientDigits+secondDigits+8 || id[0] != 'w' {
		return ""
	}
	return id[1:1+clientDigits] + id[len(id)-(markSize-clientDigits):]
}

const markSize = 8

// remember adds gone, the entries that have dropped out of Writes, to the summary. The mark of the client that wrote
// the newest entry is removed, because that client is in Writes now.
func (l *Lineage) remember(gone []Entry) {
	l.forget(mark(l.Writes[0].ID))
	for i := len(gone) - 1; i >= 0; i-- {
		m := mark(gone[i].ID)
		if m == "" || l.recent(m) != "" {
			continue // a later write of the same client is among the recent ones
		}
		l.forget(m)
		l.clients = m + l.clients
	}
	if excess := len(l.clients)/markSize - clientsKept; excess > 0 {
		l.clients = l.clients[:clientsKept*markSize]
		l.dropped += excess
	}
}

// forget removes the mark of m's client from the summary.
func (l *Lineage) forget(m string) {
	if i := indexClient(l.clients, m); i >= 0 {
		l.clients = l.clients[:i] + l.clients[i+markSize:]
	}
}

// indexClient returns the index of the mark of m's client in marks, or -1.
func indexClient(marks, m string) int {
	if m == "" {
		return -1
	}
	for i := 0; i+markSize <= len(marks); i += markSize {
		if marks[i:i+clientDigits] == m[:clientDigits] {
			return i
		}
	}
	return -1
}

// recent returns the mark of the latest write of m's client in Writes, or "".
func (l Lineage) recent(m string) string {
	for _, e := range l.Writes {
		if found := mark(e.ID); found != "" && m != "" && found[:clientDigits] == m[:clientDigits] {
			return found
		}
	}
	return ""
}

// latest returns the mark of the latest write of m's client that the lineage remembers, or "".
func (l Lineage) latest(m string) string {
	if found := l.recent(m); found != "" {
		return found
	}
	if i := indexClient(l.clients, m); i >= 0 {
		return l.clients[i : i+markSize]
	}
	return ""
}

// marks returns the marks of the latest writes of all clients, newest first.
func (l Lineage) marks() string {
	var b strings.Builder
	for _, e := range l.Writes {
		if m := mark(e.ID); m != "" && indexClient(b.String(), m) < 0 {
			b.WriteString(m)
		}
	}
	return b.String() + l.clients
}

// shares reports whether the latest write of some client is the same in both lineages.
func (l Lineage) shares(other Lineage) bool {
	theirs := other.marks()
	for i := 0; i+markSize <= len(theirs); i += markSize {
		m := theirs[i : i+markSize]
		if l.latest(m) == m {
			return true
		}
	}
	return false
}

// writeSummary encodes what the entries do not show. It writes nothing if they show everything.
func (l Lineage) writeSummary(b *strings.Builder) {
	if len(l.Writes) == 0 || l.count == len(l.Writes) && l.first == l.Writes[len(l.Writes)-1] && l.clients == "" && l.dropped == 0 {
		return
	}
	b.WriteString(summaryMark)
	b.WriteString(strconv.Itoa(l.count))
	b.WriteByte('~')
	b.WriteString(strconv.Itoa(l.dropped))
	b.WriteByte('~')
	b.WriteString(l.clients)
	b.WriteByte('~')
	b.WriteString(l.first.ID)
	b.WriteByte('~')
	b.WriteString(encodeBase(l.first.Base))
}

// parseSummary reads what writeSummary wrote after summaryMark.
func (l *Lineage) parseSummary(s string) bool {
	part := strings.SplitN(s, "~", 5)
	if len(part) != 5 || len(part[2])%markSize != 0 || len(part[2]) > clientsKept*markSize || strings.Trim(part[2], idAlphabet) != "" || part[3] == "" {
		return false
	}
	var err1, err2 error
	l.count, err1 = strconv.Atoi(part[0])
	l.dropped, err2 = strconv.Atoi(part[1])
	var base strings.Builder
	if err1 != nil || err2 != nil || l.count < len(l.Writes) || l.dropped < 0 || !decodeBase(&base, part[4]) {
		return false
	}
	l.clients, l.first = part[2], Entry{ID: part[3], Base: azcore.ETag(base.String())}
	return true
}
