package protocol

// A mark stands for a write that has dropped out of Writes. A mark is compared with that of one write only, the one that
// belongs at its position, so two different writes are confused with a probability of 2⁻⁴⁸.
const (
	markSize  = 8   // characters of 6 bits
	marksKept = 400 // the largest number of marks in a lineage; as many as fit into maxLineageBytes
)

const markAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// mark returns the mark of a write: 48 bits of the FNV-1a hash of its id, mixed so that every bit depends on every
// character. It is stored, so it cannot change.
func mark(id string) string {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h ^= h >> 33
	var m [markSize]byte
	for i := range m {
		m[i] = markAlphabet[h%64]
		h /= 64
	}
	return string(m[:])
}

// keep adds the marks of gone, the entries that have dropped out of Writes, and drops the marks that are not needed.
//
// A refused write looks for its position after a wait in which most of the contending writers have had their turn, so the
// lineage must reach over some multiple of their number. The largest Passed of the recent writes shows that number.
// While nobody contends it is 0 and no marks are kept, so the lineage of a resource with a single writer does not grow;
// after a crowd has left, the marks are dropped as soon as its entries are.
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
