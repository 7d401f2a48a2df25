package jsonform

import (
	"maps"
	"slices"
)

// search finds the order that a text gives to the members of new objects: that of the first object that is equal.
type search struct {
	text   []byte
	start  int
	orders map[string][]string // by the canonical text of an object; nil if there is no equal one, or while it is searched
	wanted map[string][]wanted // by a member, as key has it
	many   bool                // there are more new objects than it has memory for
}

// mostSought is the number of different new objects that are searched for.
const mostSought = 10_000

type wanted struct {
	canonical string
	value     map[string]any
}

// order returns the names in the order that has been found. What has not been searched is, by the next run.
func (s *search) order(v map[string]any) []string {
	sorted := slices.Sorted(maps.Keys(v))
	if len(v) < 2 {
		return sorted
	}
	canonical := string(canonical(v))
	names, searched := s.orders[canonical]
	if names != nil {
		return names
	}
	if s.many = s.many || len(s.orders) > mostSought; !searched && !s.many {
		s.orders[canonical] = nil
		if s.wanted == nil {
			s.wanted = map[string][]wanted{}
		}
		for name, value := range v {
			key := string(append(append([]byte(name), 0), key(value)...))
			s.wanted[key] = append(s.wanted[key], wanted{canonical, v})
		}
	}
	return sorted
}

// run looks through the text once for all that is wanted, and reports whether anything was.
func (s *search) run() bool {
	if s.wanted == nil {
		return false
	}
	if b := s.text[s.start]; b == '{' || b == '[' {
		s.container(s.start)
	}
	s.wanted = nil
	return true
}

// container looks at the container at start, those inside of it first: no object is equal to one inside of it.
func (s *search) container(start int) (end int) {
	var last place
	count := 0
	c := enter(s.text, start)
	for ; c.next(); count++ {
		end := 0
		if b := s.text[c.value]; b == '{' || b == '[' {
			end = s.container(c.value)
		} else {
			end = skipValue(s.text, c.value)
		}
		c.leave(end)
		last = c.place
	}
	if !c.named || count < 2 {
		return c.at
	}
	// Of members with one name the last counts, so the last of all counts: an object with another one there is not equal.
	var room [64]byte
	key := append(append(room[:0], name(s.text, last)...), 0)
	for _, w := range s.wanted[string(appendKey(key, s.text[last.value:last.end]))] {
		if s.orders[w.canonical] == nil && equal(s.text, start, w.value) {
			s.orders[w.canonical] = names(s.text, start)
		}
	}
	return c.at
}

// names returns the names of an object in the order in which they occur first.
func names(text []byte, start int) []string {
	var out []string
	for c := enter(text, start); c.next(); c.leave(skipValue(text, c.value)) {
		if n := string(name(text, c.place)); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// key is equal for scalars with the same canonical text, and for containers of one kind.
func key(v any) []byte {
	switch v := v.(type) {
	case string:
		return []byte(`"` + v)
	case map[string]any:
		return []byte{'{'}
	case []any:
		return []byte{'['}
	}
	return canonical(v)
}

// appendKey appends the key of the value in a text.
func appendKey(to, text []byte) []byte {
	switch text[0] {
	case '"':
		return append(append(to, '"'), unquote(text)...)
	case '{', '[':
		return append(to, text[0])
	}
	return append(to, text...)
}

// equal tells whether the value at start has the canonical text of v.
func equal(text []byte, start int, v any) bool {
	end := skipValue(text, start)
	if string(appendKey(nil, text[start:end])) != string(key(v)) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		same := map[string]bool{}
		for c := enter(text, start); c.next(); c.leave(skipValue(text, c.value)) {
			n := string(name(text, c.place))
			value, there := v[n]
			if !there {
				return false
			}
			same[n] = equal(text, c.value, value)
		}
		return len(same) == len(v) && !slices.Contains(slices.Collect(maps.Values(same)), false)
	case []any:
		i := 0
		for c := enter(text, start); c.next(); c.leave(skipValue(text, c.value)) {
			if i == len(v) || !equal(text, c.value, v[i]) {
				return false
			}
			i++
		}
		return i == len(v)
	}
	return true
}
