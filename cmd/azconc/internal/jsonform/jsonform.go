// Package jsonform writes a changed JSON value in the form of the text that it was made from, so that the difference
// between the two texts is the change and nothing else.
package jsonform

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// Rewrite returns the text of value in the form of base, the text of one JSON value. What did not change keeps its bytes:
// number literals, escapes and spacing. Members keep their order; new ones follow in the order of their names. New
// objects and lists are indented as base is, or written on one line where base does so. Whitespace around the value,
// such as the final newline, stays.
//
// An object that base holds elsewhere, or one of the texts in like, gives the order of the members of an equal new one.
//
// The value is of the types that gojq emits: nil, bool, int, float64, *big.Int, json.Number, string, []any and
// map[string]any. With an empty base the result is on one line, members in the order of their names. The error is that
// base is not one JSON value.
func Rewrite(base []byte, value any, like ...[]byte) ([]byte, error) {
	if len(bytes.TrimSpace(base)) == 0 {
		return (&Doc{text: base}).Rewrite(value, like...)
	}
	doc, err := Parse(base)
	if err != nil {
		return nil, err
	}
	return doc.Rewrite(value, like...)
}

// Doc is the text of one JSON value, with the value.
type Doc struct {
	text []byte
	root *node // nil without text
}

// Parse reads the text of one JSON value, which must not change as long as the Doc is used.
func Parse(text []byte) (*Doc, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	return &Doc{text, root}, nil
}

// Value returns the value, with numbers as json.Number. It shares memory with the Doc: nothing may change it.
func (d *Doc) Value() any { return d.root.value }

// Rewrite returns the text of value in the form of the Doc, as the function Rewrite does. Of a Doc of parts, value is what an
// expression with these parts made of Value; the error is ErrWhole if it is not.
func (d *Doc) Rewrite(value any, like ...[]byte) ([]byte, error) {
	w := &writer{newline: "\n", comma: ",", colon: ":"}
	for _, text := range like {
		root, err := parse(text)
		if err != nil {
			return nil, err
		}
		w.models = append(w.models, root)
	}
	if d.root == nil {
		w.fresh(value, layout{})
		return w.out.Bytes(), nil
	}
	w.out.Grow(len(d.text) + 512) // most changes are small, and a buffer that grows takes as much again
	if d.root.part != nil {
		return w.parts(d, value)
	}
	w.models = append([]*node{d.root}, w.models...)
	w.detect(d.text, d.root)
	w.out.Write(d.text[:d.root.start])
	w.value(d.root, value, layout{multi: w.multi})
	w.out.Write(d.text[d.root.end:])
	return w.out.Bytes(), nil
}

// writer holds the style of the text, and what has been written so far.
type writer struct {
	out     bytes.Buffer
	multi   bool   // the text has containers that take more than one line
	unit    string // one step of indentation
	newline string
	comma   string // what separates members on one line
	colon   string

	models []*node
	known  map[string]*node // the containers of models, by their canonical text

	search *search // instead of models, for a document of parts
	whole  bool    // the parts did not suffice
}

// layout is the place of a value: the indentation of its line, and whether its container takes several lines.
type layout struct {
	indent string
	multi  bool
}

// detect takes the style from the first containers that show it.
func (w *writer) detect(base []byte, root *node) {
	if i := bytes.IndexByte(base, '\n'); i > 0 && base[i-1] == '\r' {
		w.newline = "\r\n"
	}
	colon, comma := false, false
	var look func(n *node, indent string)
	look = func(n *node, indent string) {
		for i, m := range n.members {
			inner, multi := m.indent(indent)
			if multi && !w.multi {
				w.multi, w.unit = true, string(bytes.TrimPrefix([]byte(inner), []byte(indent)))
			}
			if m.named && !colon {
				colon, w.colon = true, m.colon()
			}
			if i > 0 && !multi && !comma {
				comma, w.comma = true, ","+m.pre
			}
			look(m.node, inner)
		}
	}
	look(root, "")
	w.spacing(colon, comma)
}

// spacing takes what no container showed from what others showed.
func (w *writer) spacing(colon, comma bool) {
	if !colon && (w.multi || w.comma == ", ") {
		w.colon = ": "
	}
	if !comma && strings.HasSuffix(w.colon, " ") {
		w.comma = ", "
	}
}

// value writes v in place of n.
func (w *writer) value(n *node, v any, at layout) {
	if n.holds(v) {
		w.out.Write(n.text)
		return
	}
	if n.part != nil {
		w.part(n, v, at)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if n.kind == '{' && len(n.members) > 0 && len(v) > 0 {
			w.object(n, v, at)
			return
		}
	case []any:
		if n.kind == '[' && len(n.members) > 0 && len(v) > 0 {
			w.list(n, v, at)
			return
		}
	}
	w.fresh(v, at)
}

// object writes v: first the members that n has too, in n's order, then the new ones.
func (w *writer) object(n *node, v map[string]any, at layout) {
	latest := make(map[string]*member, len(n.members)) // if a name occurs twice, the last one counts
	for _, m := range n.members {
		latest[m.name] = m
	}
	elements := make([]element, 0, len(v))
	for _, m := range n.members {
		if value, kept := v[m.name]; kept && latest[m.name] == m {
			elements = append(elements, element{was: m, head: m.head, value: value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if latest[name] == nil {
			elements = append(elements, element{head: w.head(name), value: v[name]})
		}
	}
	w.elements(n.frame(), elements, at)
}

// list writes v. Each element takes the form of the old element that it equals or, failing that, of the one at its
// index.
func (w *writer) list(n *node, v []any, at layout) {
	elements := make([]element, len(v))
	for i, was := range pair(n.members, v) {
		elements[i] = element{was: was, value: v[i]}
	}
	w.elements(n.frame(), elements, at)
}

// frame is what the members of a container show of its spacing.
type frame struct {
	kind        byte
	first, last *member
	second      string // the text before the second member, if there is one
	plural      bool
}

func (n *node) frame() frame {
	f := frame{kind: n.kind, first: n.members[0], last: n.members[len(n.members)-1]}
	if len(n.members) > 1 {
		f.second, f.plural = n.members[1].pre, true
	}
	return f
}

// element is a member to write, with the old one that it replaces.
type element struct {
	was   *member
	head  string
	value any
}

// elements writes a container with other members, in its spacing.
func (w *writer) elements(f frame, elements []element, at layout) {
	between := f.first.pre
	_, multi := f.first.indent(at.indent)
	switch {
	case f.plural:
		between = f.second
	case !multi:
		between = w.comma[1:]
	}
	w.out.WriteByte(f.kind)
	for i, e := range elements {
		pre := between
		switch {
		case i == 0:
			pre = f.first.pre
		case e.was != nil && e.was != f.first:
			pre = e.was.pre
		}
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.out.WriteString(pre + e.head)
		inner, multi := (&member{pre: pre}).indent(at.indent)
		if e.was == nil {
			w.fresh(e.value, layout{indent: inner, multi: multi})
			continue
		}
		if e.was.run {
			w.out.Write(e.was.text)
		} else {
			w.value(e.was.node, e.value, layout{indent: inner, multi: multi})
		}
		if i < len(elements)-1 && e.was != f.last {
			w.out.WriteString(e.was.post)
		}
	}
	w.out.WriteString(f.last.post)
	w.out.WriteByte(f.kind + 2) // '{' and '}', '[' and ']'
}

func (w *writer) head(name string) string { return string(canonical(name)) + w.colon }

// fresh writes a value that is new in this place.
func (w *writer) fresh(v any, at layout) {
	var elements []element
	open := byte('{')
	switch v := v.(type) {
	case map[string]any:
		for _, name := range w.order(v) {
			elements = append(elements, element{head: w.head(name), value: v[name]})
		}
	case []any:
		open = '['
		for _, value := range v {
			elements = append(elements, element{value: value})
		}
	default:
		w.out.Write(canonical(v))
		return
	}
	w.out.WriteByte(open)
	inner := layout{indent: at.indent + w.unit, multi: at.multi}
	for i, e := range elements {
		switch {
		case at.multi && i > 0:
			w.out.WriteString("," + w.newline + inner.indent)
		case at.multi:
			w.out.WriteString(w.newline + inner.indent)
		case i > 0:
			w.out.WriteString(w.comma)
		}
		w.out.WriteString(e.head)
		w.fresh(e.value, inner)
	}
	if at.multi && len(elements) > 0 {
		w.out.WriteString(w.newline + at.indent)
	}
	w.out.WriteByte(open + 2)
}

// order returns the names of v's members in the order of an equal object, or else sorted.
func (w *writer) order(v map[string]any) []string {
	if w.search != nil {
		return w.search.order(v)
	}
	if w.known == nil {
		w.known = map[string]*node{}
		for _, root := range slices.Backward(w.models) {
			root.index(w.known)
		}
	}
	model := w.known[string(canonical(v))]
	if model == nil {
		return slices.Sorted(maps.Keys(v))
	}
	var names []string
	for _, m := range model.members {
		if !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	return names
}

// canonical returns v on one line, members sorted by name.
func canonical(v any) []byte {
	data, err := gojq.Marshal(v)
	if err != nil {
		return []byte("null") // cannot happen: Marshal has no failures
	}
	return data
}

// pair returns, for each new value, the old member whose form it takes: an equal one if there is one, or nil.
func pair(old []*member, values []any) []*member {
	out := make([]*member, len(values))
	start, oldEnd, end := 0, len(old), len(values)
	for start < oldEnd && start < end && old[start].holds(values[start]) {
		out[start] = old[start]
		start++
	}
	for oldEnd > start && end > start && old[oldEnd-1].holds(values[end-1]) {
		oldEnd, end = oldEnd-1, end-1
		out[end] = old[oldEnd]
	}
	if oldEnd-start == 1 && end-start == 1 {
		out[start] = old[start]
		return out
	}
	equal := map[string][]*member{}
	for _, m := range old[start:oldEnd] {
		key := string(canonical(m.value))
		equal[key] = append(equal[key], m)
	}
	used := map[*member]bool{}
	for i := start; i < end; i++ {
		if same := equal[string(canonical(values[i]))]; len(same) > 0 {
			out[i], equal[string(canonical(values[i]))] = same[0], same[1:]
			used[same[0]] = true
		}
	}
	rest := slices.DeleteFunc(slices.Clone(old[start:oldEnd]), func(m *member) bool { return used[m] })
	for i := start; i < end && len(rest) > 0; i++ {
		if out[i] == nil {
			out[i], rest = rest[0], rest[1:]
		}
	}
	return out
}

// decoder reads JSON without passing numbers through floating point.
func decoder(text []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d
}
