package protocol

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// The proofs in this file rest on three facts: a version is replaced only once, the service never issues an ETag twice,
// and every azconc writer preserves the lineage that it read.
//
// A foreign writer (one outside azconc) that keeps the metadata of the version it replaces breaks none of them. One
// that puts back the metadata of an older version breaks the third. This is noticed in most cases, because the newest
// write of our base is then missing. It is not noticed if the metadata are those of our base, and are put back
// unconditionally after our write.

// holds reports whether the lineage shows that the write was applied.
func (l Lineage) holds(id string) bool {
	m := mark(id)
	return l.Has(id) || l.first.ID == id || m != "" && indexClient(l.clients, m) >= 0 && l.latest(m) == m
}

// replaced reports whether the lineage has the write that replaced the version base; "" means that there was none.
func (l Lineage) replaced(base azcore.ETag) bool {
	for _, e := range l.Writes {
		if e.Base == base {
			return true
		}
	}
	return l.first.ID != "" && l.first.Base == base
}

// continues reports whether Writes reaches back to the newest write of the base, so that it has every write since.
// Bases are compared too, because earlier versions of azconc stored operations, which can occur twice, in the place of
// writes.
func (l Lineage) continues(base Lineage) bool {
	for _, newest := range base.Writes {
		if newest.Base == UnknownBase && !strings.HasPrefix(newest.ID, "w") {
			continue // an operation, in a lineage without bases
		}
		for _, e := range l.Writes {
			// Bases are compared if both lineages have them.
			if e.ID == newest.ID && (e.Base == newest.Base || e.Base == UnknownBase || newest.Base == UnknownBase) {
				return true
			}
		}
		return false
	}
	return false
}

// whole reports whether Writes has every azconc write since the resource was created.
func (l Lineage) whole() bool {
	return len(l.Writes) > 0 && l.count == len(l.Writes) && l.first.Base == ""
}

// lacks reports whether the remembered clients prove that the write id, on a base with the lineage base, was not
// applied. It is needed if Writes does not reach back to the base.
//
// If the write had been applied, it would be its client's latest write until that client wrote again. And because
// clients are kept in the order of their latest writes, its mark would not have been dropped before the marks of
// clients that wrote earlier. So the write was not applied if its client's latest write is still the one that the base
// had. If the client has no mark, the write was not applied if no mark has been dropped since, or if a client is still
// remembered that has not written since the base.
func (l Lineage) lacks(id string, base Lineage) bool {
	m := mark(id)
	if m == "" || l.first.ID == "" || l.first != base.first || l.count < base.count+len(l.Writes) {
		return false // another lineage, or an old one that was put back
	}
	switch now := l.latest(m); now {
	case "":
		return l.dropped == base.dropped || l.shares(base)
	default:
		return now == base.latest(m)
	}
}
