package jsonform

import "errors"

// ErrWhole is the error of ParseParts and of Rewrite if parts of the text do not suffice: the caller parses all of it.
var ErrWhole = errors.New("the change needs the whole document")

// Use says what an expression does at a path.
type Use int

const (
	Read    Use = iota // the value is read, changed, or both
	Modify             // as Read, and the expression may remove it
	Replace            // a scalar, or an empty container, takes the value's place without a look at it
	Remove             // it is removed without a look at it
	Append             // elements follow those of a list, without a look at these
	Each               // each element of a list gives way to others, which depend on it alone; at one path at most
)

// Parts are the paths of a document that an expression reads or changes. The zero value has none.
type Parts struct {
	uses    map[Use]bool
	names   map[string]*Parts
	indexes map[int]*Parts

	through int  // how many uses pass through an element
	shifts  bool // one of these may remove an element, and moves those behind it
}

// Add adds a use of a path, whose steps are names and indexes. A negative index counts from the end.
func (p *Parts) Add(use Use, path ...any) {
	if len(path) == 0 {
		if p.uses == nil {
			p.uses = map[Use]bool{}
		}
		p.uses[use] = true
		return
	}
	var next *Parts
	switch step := path[0].(type) {
	case string:
		next = child(&p.names, step)
	case int:
		next = child(&p.indexes, step)
		p.through++
		p.shifts = p.shifts || len(path) == 1 && (use == Remove || use == Modify)
	}
	next.Add(use, path[1:]...)
}

func child[K comparable](children *map[K]*Parts, step K) *Parts {
	if *children == nil {
		*children = map[K]*Parts{}
	}
	if (*children)[step] == nil {
		(*children)[step] = &Parts{}
	}
	return (*children)[step]
}

// whole tells whether a value in these uses is needed as it is.
func (p *Parts) whole() bool {
	kinds := 0
	for _, one := range []bool{len(p.uses) > 0, len(p.names) > 0, len(p.indexes) > 0} {
		if one {
			kinds++
		}
	}
	return kinds != 1 || p.uses[Read] || p.uses[Modify] || (p.uses[Append] || p.uses[Each]) && len(p.uses) > 1 ||
		len(p.indexes) > 1 || p.shifts && p.through > 1
}

// blind tells whether nothing looks at the value.
func (p *Parts) blind() bool { return !p.whole() && (p.uses[Replace] || p.uses[Remove]) }

// unseen stands for a container that nothing looks at. No JSON value equals it, and no JSON text has its name.
func unseen() any { return map[string]any{"\xff": nil} }

// ParseParts reads the text of one JSON value as Parse does, but decodes no more than the parts. The Value of the Doc has no other
// members, and of a list no more elements than the index in parts counts; the others are null. Rewrite takes what the
// expression makes of this value, and writes what Parse and Rewrite would write: what lies outside the parts keeps its text.
//
// With a path to use for Each, each returns what takes the place of an element. It is called more than once for an element, also by
// Rewrite, and must return the same each time. In the Value the list is empty.
//
// The error is ErrWhole if the text has not the shape that the paths expect, and otherwise that the text is not one JSON value, or that of
// each.
func ParseParts(text []byte, parts *Parts, each func(element any) ([]any, error)) (*Doc, error) {
	if parts.whole() || parts.blind() {
		return nil, ErrWhole
	}
	if err := check(text); err != nil {
		return nil, err
	}
	p := &picker{text: text, each: each}
	root, end, err := p.pick(skipSpace(text, 0), parts)
	if err != nil {
		return nil, err
	}
	if root.part == nil || p.each != nil {
		return nil, ErrWhole // a scalar, or an empty container: it is as small in the other way
	}
	root.start, root.end = skipSpace(text, 0), end
	return &Doc{text, root}, nil
}

// part is a container of which only some members are decoded.
type part struct {
	first, last *member
	second      string // the text before the second member, if there is one
	plural      bool
	pieces      []*member

	elements int // of a list's value, and
	at       int // which of them is decoded; -1 if the list is appended to
	index    int // its index in the text

	each *mapped // of a list with new elements
}

// picker decodes parts of text, which is valid.
type picker struct {
	text []byte
	each func(element any) ([]any, error) // nil after its use
}

// pick returns the node of the value at start, and where it ends.
func (p *picker) pick(start int, parts *Parts) (*node, int, error) {
	c := p.text[start]
	if c != '{' && c != '[' || parts.whole() {
		end := skipValue(p.text, start)
		n, err := parse(p.text[start:end])
		return n, end, err
	}
	if empty := p.text[skipSpace(p.text, start+1)]; empty == '}' || empty == ']' {
		end := skipValue(p.text, start)
		n, err := parse(p.text[start:end])
		return n, end, err
	}
	switch {
	case parts.blind():
		end := skipValue(p.text, start)
		return &node{kind: c, text: p.text[start:end], value: unseen()}, end, nil
	case c == '{' && parts.names != nil:
		return p.object(start, parts)
	case c == '[' && parts.indexes != nil:
		for i, inner := range parts.indexes {
			return p.list(start, i, inner)
		}
	case c == '[' && parts.uses[Append]:
		return p.list(start, -1, nil)
	case c == '[' && parts.uses[Each] && p.each != nil:
		n, end, err := mapList(p.text, start, p.each)
		p.each = nil
		return n, end, err
	}
	return nil, 0, ErrWhole // an error of the expression, which shows the value
}

func (p *picker) object(start int, parts *Parts) (*node, int, error) {
	dropped := shadowed(p.text, start)
	n := &node{kind: '{', part: &part{}}
	value := map[string]any{}
	end, err := p.pieces(n, start, func(_ int, at place) (*Parts, bool) {
		if dropped(at) {
			return nil, false
		}
		return parts.names[string(name(p.text, at))], true
	}, func(m *member) { value[m.name] = m.value })
	n.value = value
	return n, end, err
}

// list picks the element at index. With inner nil, it picks none.
func (p *picker) list(start, index int, inner *Parts) (*node, int, error) {
	count := 0
	for c := enter(p.text, start); c.next(); c.leave(skipValue(p.text, c.value)) {
		count++
	}
	n := &node{kind: '[', part: &part{at: -1}}
	value := []any{}
	if inner != nil {
		switch {
		case index >= count || index < -count: // the list grows, or that is an error
			end := skipValue(p.text, start)
			n, err := parse(p.text[start:end])
			return n, end, err
		case index >= 0:
			n.part.elements, n.part.at = index+1, index
		default:
			n.part.elements, n.part.at, index = -index, 0, count+index
		}
		n.part.index, value = index, make([]any, n.part.elements)
	}
	end, err := p.pieces(n, start, func(i int, _ place) (*Parts, bool) {
		if inner == nil || i != index {
			return nil, true
		}
		return inner, true
	}, func(m *member) { value[n.part.at] = m.value })
	n.value = value
	return n, end, err
}

// pieces gathers the members of n: each that has parts alone, and others together, as far as they follow one another.
func (p *picker) pieces(n *node, start int, parts func(i int, at place) (inner *Parts, kept bool), add func(*member)) (int, error) {
	var m *member // the latest one
	from := 0
	c := enter(p.text, start)
	for i := 0; c.next(); i++ {
		inner, kept := parts(i, c.place)
		pre := c.text[c.from:c.head]
		end := 0
		switch {
		case kept && inner != nil:
			m = &member{pre: string(pre), head: string(c.text[c.head:c.value])}
			if n.kind == '{' {
				m.name, m.named = string(name(c.text, c.place)), true
			}
			var err error
			if m.node, end, err = p.pick(c.value, inner); err != nil {
				return 0, err
			}
			n.part.pieces, n.dirty = append(n.part.pieces, m), n.dirty || m.dirty
			add(m)
		case kept:
			if m == nil || !m.run {
				m, from = &member{node: &node{}, pre: string(pre), run: true}, c.head
				n.part.pieces = append(n.part.pieces, m)
			}
			end = skipValue(c.text, c.value)
			m.text = c.text[from:end]
		default:
			m = &member{node: &node{}, pre: string(pre)}
			end = skipValue(c.text, c.value)
		}
		c.leave(end)
		if post := c.text[end:c.after]; string(post) != m.post {
			m.post = string(post)
		}
		switch i {
		case 0:
			n.part.first = m
		case 1:
			n.part.second, n.part.plural = string(pre), true
		}
		n.part.last = m
	}
	n.text = c.text[start:c.at]
	return c.at, nil
}
