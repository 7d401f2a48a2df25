package protocol

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// The proofs in this file rest on three facts: a version is replaced only once, the service issues no ETag again once it has
// issued another, and every azconc writer preserves the lineage that it read.
//
// A foreign writer (one outside azconc) that keeps the metadata of the version it replaces breaks none of them. One
// that puts back the metadata of an older version breaks the third. This is noticed in most cases, because the newest
// write of our base is then missing, or another write is at its position. It is not noticed if the metadata are those of
// our base, and are put back unconditionally after our write. The strict form of the proof takes any foreign write over
// our base for such a one.

// holds reports whether the lineage has the entry of the write.
func (l Lineage) holds(id string) bool { return l.Has(id) || l.first.ID == id }

// replaced reports whether the lineage has the write that replaced the version base; "" means that there was none.
func (l Lineage) replaced(base azcore.ETag) bool {
	for _, e := range l.Writes {
		if e.Base == base {
			return true
		}
	}
	return l.first.ID != "" && l.first.Base == base
}

// whole reports whether Writes has every azconc write since the resource was created.
func (l Lineage) whole() bool {
	return len(l.Writes) > 0 && l.count == len(l.Writes) && l.first.Base == ""
}

// fate judges the write id over base by the write that follows the base's newest one. If it was applied, it is that write.
//
// strict demands that another azconc write replaced that very version, or that only its mark is left.
func (l Lineage) fate(id string, base State, strict bool) Fate {
	next, m, found := l.after(base.Lineage)
	switch {
	case !found:
		return Unprovable
	case m == mark(id), next.ID == id:
		return Committed
	case m != "":
		return Refused
	case strict && next.Base != base.ETag && next.Base != UnknownBase: // also if a foreign writer has kept the base's lineage
		return Unprovable
	}
	return Refused
}

// after returns the first write after the newest one of base, or its mark. Both are empty if there is none. found is false
// if the lineage does not continue that of base, or no longer reaches back to it.
func (l Lineage) after(base Lineage) (next Entry, m string, found bool) {
	i := l.index(base)
	if i == 0 {
		return Entry{}, "", true
	} else if i > 0 {
		return l.Writes[i-1], "", true
	}
	// By position. The anchor shows that the chain is the same: the write at the base's own position is the base's newest.
	if len(base.Writes) == 0 || l.first.ID != base.first.ID || l.first.Base != base.first.Base {
		return Entry{}, "", false
	}
	if _, anchor, ok := l.at(base.count); !ok || anchor != mark(base.Writes[0].ID) {
		return Entry{}, "", false
	}
	return l.at(base.count + 1)
}

// index returns the index in Writes of the newest write of base, or -1. Bases are compared if both lineages have them,
// because earlier versions of azconc stored operations, which can occur twice, in the place of writes.
func (l Lineage) index(base Lineage) int {
	for _, newest := range base.Writes {
		if newest.Base == UnknownBase && !strings.HasPrefix(newest.ID, "w") {
			continue // an operation, in a lineage without bases
		}
		for i, e := range l.Writes {
			if e.ID == newest.ID && (e.Base == newest.Base || e.Base == UnknownBase || newest.Base == UnknownBase) {
				return i
			}
		}
		break
	}
	return -1
}
