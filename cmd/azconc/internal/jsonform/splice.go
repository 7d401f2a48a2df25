package jsonform

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// parts writes a document of parts.
func (w *writer) parts(d *Doc, value any) ([]byte, error) {
	w.style(d.text, d.root.start)
	w.search = &search{text: d.text, start: d.root.start, orders: map[string][]string{}}
	for again := true; again; again = w.search.run() { // the second time with the orders that the first one asked for
		w.out.Reset()
		w.out.Write(d.text[:d.root.start])
		w.value(d.root, value, layout{multi: w.multi})
		w.out.Write(d.text[d.root.end:])
		if w.whole || w.search.many {
			return nil, ErrWhole
		}
	}
	return w.out.Bytes(), nil
}

// style is detect for a text that is not in nodes. It stops at the first member after which nothing is open.
func (w *writer) style(text []byte, start int) {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		w.newline = "\r\n"
	}
	colon, comma := false, false
	var look func(start int, indent string) (end int)
	look = func(start int, indent string) int {
		c := enter(text, start)
		for i := 0; c.next(); i++ {
			inner, multi := indent, false
			if at := bytes.LastIndexByte(text[c.from:c.head], '\n'); at >= 0 {
				inner, multi = string(text[c.from+at+1:c.head]), true
			}
			if multi && !w.multi {
				w.multi, w.unit = true, strings.TrimPrefix(inner, indent)
			}
			if c.named && !colon {
				colon, w.colon = true, string(text[skipString(text, c.head):c.value])
			}
			if i > 0 && !multi && !comma {
				comma, w.comma = true, ","+string(text[c.from:c.head])
			}
			if w.multi && colon && comma {
				return len(text)
			}
			end := 0
			if b := text[c.value]; b == '{' || b == '[' {
				end = look(c.value, inner)
			} else {
				end = skipValue(text, c.value)
			}
			if end == len(text) { // a member is inside of something, so its end is not that of the text
				return end
			}
			c.leave(end)
		}
		return c.at
	}
	look(start, "")
	w.spacing(colon, comma)
}

// part writes v in place of n, which is in parts.
func (w *writer) part(n *node, v any, at layout) {
	var elements []element
	switch v := v.(type) {
	case []any:
		if n.part.each != nil {
			w.mapped(n.part.each, at)
			return
		}
		elements = w.listed(n, v)
	case map[string]any:
		elements = w.named(n, v)
	default:
		w.whole = true
		return
	}
	if len(elements) == 0 {
		w.fresh(v, at)
		return
	}
	p := n.part
	w.elements(frame{kind: n.kind, first: p.first, last: p.last, second: p.second, plural: p.plural}, elements, at)
}

func (w *writer) named(n *node, v map[string]any) []element {
	if n.kind != '{' {
		w.whole = true
		return nil
	}
	var elements []element
	old := n.value.(map[string]any)
	for _, m := range n.part.pieces {
		if m.run {
			elements = append(elements, element{was: m})
		} else if value, kept := v[m.name]; kept {
			elements = append(elements, element{was: m, head: m.head, value: value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if _, there := old[name]; !there {
			elements = append(elements, element{head: w.head(name), value: v[name]})
		}
	}
	return elements
}

func (w *writer) listed(n *node, v []any) []element {
	p := n.part
	var elements []element
	switch {
	case n.kind != '[':
		w.whole = true
	case p.at < 0:
		for _, m := range p.pieces {
			elements = append(elements, element{was: m})
		}
		for _, value := range v {
			elements = append(elements, element{value: value})
		}
	case len(v) == p.elements:
		for _, m := range p.pieces {
			e := element{was: m}
			if !m.run {
				e.value = v[p.at]
			}
			elements = append(elements, e)
		}
	case len(v) == p.elements-1:
		return w.without(n)
	default:
		w.whole = true
	}
	return elements
}

// without returns the elements of a list without the one that is decoded. If those behind it are equal to it, the last of them is the
// one that goes, as pair has it.
func (w *writer) without(n *node) []element {
	var first, previous, gone, next place // of the run before the one that goes: the first and the last; and behind it: the first
	c := enter(n.text, 0)
	i := 0
	for ; c.next(); i++ {
		c.leave(skipValue(n.text, c.value))
		if i == 0 {
			first = c.place
		}
		if i > n.part.index && !sameText(n.text[gone.value:gone.end], n.text[c.value:c.end]) {
			next = c.place
			break
		}
		previous, gone = gone, c.place
	}
	var elements []element
	add := func(from, to int, pre, post string) {
		m := &member{node: &node{text: n.text[from:to]}, run: true, pre: pre, post: post}
		elements = append(elements, element{was: m})
	}
	if gone.head != first.head {
		add(first.head, previous.end, "", string(n.text[previous.end:previous.after])) // the list's first.pre goes before it
	}
	if next.head > 0 {
		end := len(n.text) - 1 - len(n.part.last.post)
		add(next.head, end, string(n.text[next.from:next.head]), "") // and its last.post behind it
	}
	return elements
}

// sameText tells whether two texts are of values that are the same.
func sameText(a, b []byte) bool { return bytes.Equal(a, b) || decoded(a).holds(decoded(b).value) }

// decoded returns the node of a text that is valid.
func decoded(text []byte) *node { return (&parser{text: text, shared: string(text)}).value() }
