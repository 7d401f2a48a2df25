package optimistic

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// What follows are the proofs that a lineage gives. They rest on three facts: a version is replaced once only, the
// service never hands out an ETag twice, and every azconc writer carries on what it read.
//
// A writer outside azconc that keeps the metadata of the version it replaces breaks none of them. One that puts back
// metadata of an older version breaks the third. Most of these are noticed, because the newest write of our base is
// missing then; one that puts back the metadata of our very base, unconditionally and after our write, is not.

// holds reports whether the lineage shows that the write was applied.
func (l Lineage) holds(id string) bool {
	m := mark(id)
	return l.Has(id) || l.first.ID == id || m != "" && indexClient(l.clients, m) >= 0 && l.latest(m) == m
}

// replaced reports whether the lineage holds the write that replaced the version base; "" is absence.
func (l Lineage) replaced(base azcore.ETag) bool {
	for _, e := range l.Writes {
		if e.Base == base {
			return true
		}
	}
	return l.first.ID != "" && l.first.Base == base
}

// continues reports whether the recent writes reach back to the base's newest write, so that they hold every write since.
// Entries are compared with their bases: earlier versions of azconc put operations, which can come again, in the place
// of writes.
func (l Lineage) continues(base Lineage) bool {
	for _, newest := range base.Writes {
		if newest.Base == unknownBase && !strings.HasPrefix(newest.ID, "w") {
			continue // an operation in a lineage that stores no bases
		}
		for _, e := range l.Writes {
			// A lineage that stores no bases has none to compare.
			if e.ID == newest.ID && (e.Base == newest.Base || e.Base == unknownBase || newest.Base == unknownBase) {
				return true
			}
		}
		return false
	}
	return false
}

// whole reports whether the recent writes are all that azconc has written since the resource was created.
func (l Lineage) whole() bool {
	return len(l.Writes) > 0 && l.count == len(l.Writes) && l.first.Base == ""
}

// lacks proves that the write id over a resource with the lineage base was not applied, from what is remembered of the
// clients, where the recent writes do not reach back to the base.
//
// Had it been applied, it would be its client's latest write, until that client wrote again; and since the clients are
// kept in the order of their latest writes, it would not have been dropped before those that wrote earlier. So it was
// not applied if its client's latest write is the one that the base knew, or if the client has none and either nothing
// has been dropped since or a client that has not written since the base is still remembered.
func (l Lineage) lacks(id string, base Lineage) bool {
	m := mark(id)
	if m == "" || l.first.ID == "" || l.first != base.first || l.count < base.count+len(l.Writes) {
		return false // another lineage, or one that was put back
	}
	switch now := l.latest(m); now {
	case "":
		return l.dropped == base.dropped || l.shares(base)
	default:
		return now == base.latest(m)
	}
}
