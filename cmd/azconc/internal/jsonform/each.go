package jsonform

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"slices"
)

// mapped is a list of which each element gives way to others. It holds no values: what it needs it decodes and computes again.
type mapped struct {
	text []byte
	each func(any) ([]any, error)

	at    []int   // where the old elements begin
	state []uint8 // of the old elements
	of    []int   // for the new ones, the old one that each comes from

	// The new elements before start are equal to the old ones in the same places, and those from end on to those from oldEnd on.
	start, oldEnd, end int
	was                []int // for the others, the old one whose form each takes, or -1

	latest  int // the old element that results come from, the first of them at from
	from    int
	results []any
	err     error // of each, when it was called again
}

const (
	one   uint8 = 1 << iota // it gives way to one element
	kept                    // that is equal to it
	alike                   // and has the same canonical text
)

// mapList returns the node of the list at start, with its new elements.
func mapList(text []byte, start int, each func(any) ([]any, error)) (*node, int, error) {
	m := &mapped{text: text, each: each, latest: -1}
	c := enter(text, start)
	n := &node{kind: '[', value: []any{}, part: &part{each: m}}
	count := 0
	for c := enter(text, start); c.next(); c.leave(skipValue(text, c.value)) {
		count++
	}
	m.at, m.state, m.of = make([]int, 0, count), make([]uint8, 0, count), make([]int, 0, count)
	for i := 0; c.next(); i++ {
		c.leave(skipValue(text, c.value))
		m.at = append(m.at, c.value)
		old := decoded(text[c.value:c.end])
		results, err := each(old.value)
		if err != nil {
			return nil, 0, err
		}
		var state uint8
		if len(results) == 1 {
			state = one
			if old.holds(results[0]) {
				state |= kept
			}
			if identical(old.value, results[0]) {
				state |= alike
			}
		}
		m.state = append(m.state, state)
		for range results {
			m.of = append(m.of, i)
		}
	}
	if err := m.pair(); err != nil {
		return nil, 0, err
	}
	n.dirty = len(m.of) != len(m.at) || m.start < len(m.at)
	n.text = text[start:c.at]
	return n, c.at, nil
}

func (m *mapped) old(i int) *node { return decoded(m.text[m.at[i]:skipValue(m.text, m.at[i])]) }

// result computes a new element.
func (m *mapped) result(k int) any {
	i := m.of[k]
	if m.latest != i {
		results, err := m.each(m.old(i).value)
		m.fail(err)
		m.latest, m.results = i, results
		for m.from = k; m.from > 0 && m.of[m.from-1] == i; {
			m.from--
		}
	}
	if k-m.from >= len(m.results) {
		m.fail(ErrWhole) // each did not return the same
		return nil
	}
	return m.results[k-m.from]
}

func (m *mapped) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// holds tells whether the new element k is the old element i.
func (m *mapped) holds(i, k int) bool {
	if m.of[k] == i && m.state[i]&one != 0 {
		return m.state[i]&kept != 0
	}
	return m.old(i).holds(m.result(k))
}

// pair does what the function pair does, with hashes of 64 bits in place of the texts of values: different ones have the same with a
// probability that does not count, and then an element takes the form of another one.
func (m *mapped) pair() error {
	m.oldEnd, m.end = len(m.at), len(m.of)
	for m.start < m.oldEnd && m.start < m.end && m.holds(m.start, m.start) {
		m.start++
	}
	for m.oldEnd > m.start && m.end > m.start && m.holds(m.oldEnd-1, m.end-1) {
		m.oldEnd, m.end = m.oldEnd-1, m.end-1
	}
	m.was = make([]int, m.end-m.start)
	if m.oldEnd-m.start == 1 && len(m.was) == 1 {
		m.was[0] = m.start
		return m.err
	}
	if len(m.was) == 0 {
		return m.err
	}
	seed := maphash.MakeSeed()
	hashes := make([]uint64, m.oldEnd-m.start)
	sorted := make([]int, len(hashes))
	for i := range hashes {
		hashes[i], sorted[i] = maphash.Bytes(seed, canonical(m.old(m.start+i).value)), i
	}
	slices.SortFunc(sorted, func(a, b int) int { return cmp.Or(cmp.Compare(hashes[a], hashes[b]), cmp.Compare(a, b)) })
	taken, used := make([]int, len(hashes)), make([]bool, len(hashes)) // taken of the equal ones that begin at a place in sorted
	for j := 0; j < len(m.was) && m.err == nil; j++ {
		m.was[j] = -1
		hash := m.hash(seed, m.start+j, hashes)
		first, _ := slices.BinarySearchFunc(sorted, hash, func(i int, hash uint64) int { return cmp.Compare(hashes[i], hash) })
		if first == len(sorted) {
			continue
		}
		if at := first + taken[first]; at < len(sorted) && hashes[sorted[at]] == hash {
			m.was[j], used[sorted[at]] = m.start+sorted[at], true
			taken[first]++
		}
	}
	i := 0
	for j := range m.was {
		for i < len(used) && used[i] {
			i++
		}
		if m.was[j] < 0 && i < len(used) {
			m.was[j] = m.start + i
			i++
		}
	}
	return m.err
}

// hash returns the hash of the new element k, given those of old elements from start on.
func (m *mapped) hash(seed maphash.Seed, k int, old []uint64) uint64 {
	if i := m.of[k]; m.state[i]&alike != 0 && m.start <= i && i < m.oldEnd {
		return old[i-m.start]
	}
	return maphash.Bytes(seed, canonical(m.result(k)))
}

// form returns the old element whose form the new element k takes, or -1.
func (m *mapped) form(k int) int {
	switch {
	case k < m.start:
		return k
	case k >= m.end:
		return k - m.end + m.oldEnd
	}
	return m.was[k-m.start]
}

// place returns where the old element i is.
func (m *mapped) place(i int) place {
	p := place{from: m.at[i], head: m.at[i], value: m.at[i], end: skipValue(m.text, m.at[i])}
	for skipSpace(m.text[:p.from], p.from-1) == p.from {
		p.from--
	}
	p.after = skipSpace(m.text, p.end)
	return p
}

// mapped writes a list with its new elements, as elements would.
func (w *writer) mapped(m *mapped, at layout) {
	if len(m.of) == 0 {
		w.fresh([]any{}, at)
		return
	}
	pre := func(i int) string { p := m.place(i); return string(m.text[p.from:p.head]) }
	first, final := pre(0), m.place(len(m.at)-1)
	between := first
	_, multi := (&member{pre: first}).indent(at.indent)
	switch {
	case len(m.at) > 1:
		between = pre(1)
	case !multi:
		between = w.comma[1:]
	}
	w.out.WriteByte('[')
	for k := 0; k < len(m.of) && m.err == nil; k++ {
		was := m.form(k)
		var p place
		space := between
		if was >= 0 {
			p = m.place(was)
		}
		switch {
		case k == 0:
			space = first
		case was > 0:
			space = string(m.text[p.from:p.head])
		}
		if k > 0 {
			w.out.WriteByte(',')
		}
		w.out.WriteString(space)
		inner, multi := (&member{pre: space}).indent(at.indent)
		switch {
		case was < 0:
			w.fresh(m.result(k), layout{indent: inner, multi: multi})
			continue
		case m.of[k] == was && m.state[was]&kept != 0:
			w.out.Write(m.text[p.value:p.end])
		default:
			w.value(m.old(was), m.result(k), layout{indent: inner, multi: multi})
		}
		if k < len(m.of)-1 && was != len(m.at)-1 {
			w.out.Write(m.text[p.end:p.after])
		}
	}
	w.out.Write(m.text[final.end:final.after])
	w.out.WriteByte(']')
	w.whole = w.whole || m.err != nil
}

// identical tells whether values have the same canonical text, and may miss it.
func identical(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			if other, there := b[name]; !there || !identical(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, identical)
	case json.Number, string, bool, nil:
		switch b.(type) {
		case json.Number, string, bool, nil:
			return a == b
		}
	}
	return false
}
