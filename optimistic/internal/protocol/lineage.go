package protocol

import "github.com/Azure/azure-sdk-for-go/sdk/azcore"

// LineageKey is the name under which the lineage is stored: the key of a blob's metadata, or the name of a string
// property of a table entity. It has letters only, because proxies drop headers with underscores, and metadata names
// must be C# identifiers.
const LineageKey = "azconclineage"

// Entry is one write in a lineage.
type Entry struct {
	ID   string      // the id of the write
	Base azcore.ETag // the version that the write replaced; empty if the resource did not exist, UnknownBase if not known

	// Passed is how many other writes were applied between the beginning of the writer's call and this write. Contending
	// writers estimate their number from it; it proves nothing.
	Passed int
}

// UnknownBase is the Base of a write without a condition on a version: last writer wins. It cannot be an ETag.
const UnknownBase azcore.ETag = "?"

// Lineage is the recent history of a resource. It is stored with the content, so reading it costs nothing.
//
// Every azconc writer puts its own entry in front of the entries that it read, and adds one to the count. Entries are
// dropped only at the old end, so a lineage is a history without gaps, in which every write has a position: the newest is
// at position count, the one before it at count-1, and so on. That makes absence a proof: a write that replaced the
// version with count c is at position c+1, or was never applied.
//
// While writers contend, the positions that have dropped out of Writes are kept as marks, short hashes of the ids, so
// that the proof reaches as far as the crowd of writers needs. See keep.
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
		out.count, out.first, out.marks = 1, Entry{ID: e.ID, Base: e.Base}, ""
		return out
	}
	out.count++
	out.keep(l.Writes[keep:])
	return out
}
