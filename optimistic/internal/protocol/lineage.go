package protocol

import (
	"hash/fnv"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// LineageKey is the name under which the lineage is stored: the key of a blob's metadata, or the name of a string
// property of a table entity. It has letters only, because proxies drop headers with underscores, and metadata names
// must be C# identifiers.
const LineageKey = "azconclineage"

// Entry is one write in a lineage.
type Entry struct {
	ID   string // the id of the write
	Base string // the version that the write replaced, see Over

	// Passed is how many other writes were applied between the beginning of the writer's call and this write. Contending
	// writers estimate their number from it; it proves nothing.
	Passed int
}

// Over returns the Base of a write that replaced a version: a mark of the ETag. It is empty if the resource did not exist. Two
// ETags have the same mark with a probability of 2⁻⁶⁰, about that of two writes with the same id.
func Over(version azcore.ETag) string {
	switch version {
	case "", UnknownBase:
		return string(version)
	case azcore.ETagAny:
		return string(UnknownBase)
	}
	return markOf(string(version), baseSize)
}

// UnknownBase takes the place of the version that a write without a condition on one replaces: last writer wins. It cannot be
// an ETag.
const UnknownBase azcore.ETag = "?"

// Lineage is the recent history of a resource. It is stored with the content, so reading it costs nothing.
//
// Every azconc writer puts its own entry in front of the entries that it read, and adds one to the count. Entries are
// dropped only at the old end, so a lineage is a history without gaps, in which every write has a position: the newest is
// at position count, the one before it at count-1, and so on. That makes absence a proof: a write that replaced the
// version with count c is at position c+1, or was never applied.
//
// While writers contend, the positions that have dropped out of Writes are kept as marks, short hashes of the ids, so
// that the proof reaches as far as the contending writers need. See keep.
//
// Operations are the callers' OperationIDs. They are stored separately from the writes, under OperationsKey, because
// they are kept longer and prove something else.
type Lineage struct {
	Writes     []Entry     // the recent writes, newest first
	Operations []Operation // the operations carried out, newest first

	count int    // the position of the newest write; first is at position 1
	first Entry  // the write that began this lineage
	marks string // the marks of the writes before Writes, newest first, markSize characters each
}

// LineageOf returns a lineage of these entries alone, newest first.
func LineageOf(entries ...Entry) Lineage {
	l := Lineage{Writes: entries, count: len(entries)}
	if len(entries) > 0 {
		l.first = entries[len(entries)-1]
		l.first.Passed = 0
	}
	return l
}

// Has reports whether Writes has an entry with the id.
func (l Lineage) Has(id string) bool {
	return slices.ContainsFunc(l.Writes, func(e Entry) bool { return e.ID == id })
}

// Push returns the lineage with e in front, and with at most size entries in Writes. It does not change l.
func (l Lineage) Push(size int, e Entry) Lineage {
	keep := min(max(size-1, 0), len(l.Writes))
	out := l
	out.Writes = append(make([]Entry, 0, keep+1), e)
	out.Writes = append(out.Writes, l.Writes[:keep]...)
	if len(l.Writes) == 0 {
		out.count, out.first, out.marks = 1, Entry{ID: e.ID, Base: e.Base}, ""
		return out
	}
	out.count++
	out.keep(l.Writes[keep:])
	return out
}

// A mark stands for a write that has dropped out of Writes. A mark is compared with that of one write only, the one that
// belongs at its position, so two different writes are confused with a probability of 2⁻⁴⁸.
const (
	markSize  = 8   // characters of 6 bits
	baseSize  = 10  // characters of the mark of a version
	marksKept = 400 // the largest number of marks in a lineage; as many as fit into maxLineageBytes
)

const markAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// mark returns the mark of a write.
func mark(id string) string { return markOf(id, markSize) }

// markOf returns the FNV-1a hash of a text in characters of 6 bits, mixed so that every bit depends on every character. It is
// stored, so it cannot change.
func markOf(text string, size int) string {
	f := fnv.New64a()
	f.Write([]byte(text))
	h := f.Sum64()
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h ^= h >> 33
	m := make([]byte, size)
	for i := range m {
		m[i] = markAlphabet[h%64]
		h /= 64
	}
	return string(m)
}

// keep adds the marks of gone, the entries that have dropped out of Writes, and drops the marks that are not needed.
//
// A refused write looks for its position after a wait in which most of the contending writers have had their turn, so the
// lineage must reach over some multiple of their number. The largest Passed of the recent writes shows that number.
// While nobody contends it is 0 and no marks are kept, so the lineage of a resource with a single writer does not grow;
// after the other writers have left, the marks are dropped as soon as its entries are.
func (l *Lineage) keep(gone []Entry) {
	most := 0
	for _, e := range l.Writes {
		most = max(most, e.Passed)
	}
	kept := min(reachFactor*most, marksKept) * markSize
	var fresh []byte
	for _, e := range gone {
		if len(fresh) < kept {
			fresh = append(fresh, mark(e.ID)...)
		}
	}
	l.marks = string(fresh) + l.marks
	l.marks = l.marks[:min(kept, len(l.marks))]
}

// reachFactor is the number of marks that a lineage keeps for each contending writer. In simulation no writer missed its
// position with 4, at up to 256 writers.
const reachFactor = 4

// at returns the entry at a position, or its mark if the entry has dropped out of Writes. ok is false if the lineage does
// not reach that position.
func (l Lineage) at(position int) (e Entry, m string, ok bool) {
	i := l.count - position
	if i < 0 || position < 1 {
		return Entry{}, "", false
	}
	if i < len(l.Writes) {
		return l.Writes[i], "", true
	}
	from := (i - len(l.Writes)) * markSize
	if from+markSize <= len(l.marks) {
		return Entry{}, l.marks[from : from+markSize], true
	}
	return Entry{}, "", false
}

// reach returns the number of positions that the lineage shows.
func (l Lineage) reach() int { return len(l.Writes) + len(l.marks)/markSize }

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
	over := Over(base)
	return l.first.ID != "" && l.first.Base == over || slices.ContainsFunc(l.Writes, func(e Entry) bool { return e.Base == over })
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
	case strict && next.Base != Over(base.ETag) && next.Base != Over(UnknownBase): // also if a foreign writer has kept the base's lineage
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

// index returns the index in Writes of the newest write of base, or -1.
func (l Lineage) index(base Lineage) int {
	if len(base.Writes) == 0 {
		return -1
	}
	return slices.IndexFunc(l.Writes, func(e Entry) bool { return e.ID == base.Writes[0].ID })
}
