package jsonform

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// node is a value in a text.
type node struct {
	kind       byte // '{', '[', or 0 for a scalar
	dirty      bool // a list in it has new elements, which value does not show
	start, end int
	text       []byte
	value      any
	members    []*member
	part       *part // instead of members, if not all of them are decoded
}

// member is an element of a list, or a member of an object, with the whitespace around it.
type member struct {
	*node
	named bool
	run   bool // it stands for members that follow one another, none of them decoded; then text has their heads too
	name  string
	pre   string // between the bracket or comma before it and its beginning
	head  string // of an object's: from the name to the value
	post  string // between the value and the comma or bracket after it
}

// indent returns the indentation of the member's line, and whether the member begins a line; otherwise it is on its
// container's line.
func (m *member) indent(outer string) (string, bool) {
	if i := strings.LastIndexByte(m.pre, '\n'); i >= 0 {
		return m.pre[i+1:], true
	}
	return outer, false
}

// colon is the text between the name and the value.
func (m *member) colon() string { return m.head[strings.LastIndexByte(m.head, '"')+1:] }

// holds tells whether v is n's value, so that n's text can stay. Two literals of a number are the same number only if
// that is certain within the precision of a float64.
func (n *node) holds(v any) bool {
	if n.dirty {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return n.kind == '{' && same(n.value, v)
	case []any:
		return n.kind == '[' && same(n.value, v)
	default:
		return n.kind == 0 && same(n.value, v)
	}
}

func same(a, b any) bool {
	switch b := b.(type) {
	case map[string]any:
		a, ok := a.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range b {
			if old, there := a[name]; !there || !same(old, value) {
				return false
			}
		}
		return true
	case []any:
		a, ok := a.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i, value := range b {
			if !same(a[i], value) {
				return false
			}
		}
		return true
	case json.Number:
		if a, ok := a.(json.Number); ok && (len(a) > 15 || len(b) > 15) {
			return a == b
		}
	}
	return gojq.Compare(a, b) == 0
}

// index adds the objects in n to known, the first of several equal ones last.
func (n *node) index(known map[string]*node) {
	for i := len(n.members) - 1; i >= 0; i-- {
		n.members[i].index(known)
	}
	if n.kind == '{' {
		known[string(canonical(n.value))] = n
	}
}

// parse reads the text of one JSON value. Strings without escapes share one copy of the text, so they take no memory of their own.
func parse(text []byte) (*node, error) {
	if err := check(text); err != nil {
		return nil, err
	}
	p := &parser{text: text, shared: string(text)}
	return p.value(), nil
}

// parser reads text that is valid.
type parser struct {
	text   []byte
	shared string // the same
	at     int
}

// skip returns the position of the first byte from i on that is neither whitespace nor one of also.
func (p *parser) skip(i int, also string) int {
	for i < len(p.text) && strings.IndexByte(" \t\r\n"+also, p.text[i]) >= 0 {
		i++
	}
	return i
}

func (p *parser) value() *node {
	p.at = p.skip(p.at, "")
	n := &node{start: p.at}
	switch c := p.text[p.at]; c {
	case '{':
		n.kind = c
		value := map[string]any{}
		p.members(n, func(m *member) { value[m.name] = m.value })
		n.value = value
	case '[':
		n.kind = c
		p.members(n, func(*member) {})
		value := make([]any, len(n.members))
		for i, m := range n.members {
			value[i] = m.value
		}
		n.value = value
	case '"':
		n.value = p.string()
	case 't', 'f', 'n':
		p.at += 4
		if c == 'f' {
			p.at++
		}
		if c != 'n' {
			n.value = c == 't'
		}
	default:
		for p.at < len(p.text) && strings.IndexByte("+-.eE0123456789", p.text[p.at]) >= 0 {
			p.at++
		}
		n.value = json.Number(p.shared[n.start:p.at])
	}
	n.end = p.at
	n.text = p.text[n.start:n.end]
	return n
}

// string reads a string. One with escapes, or that is not UTF-8, becomes what encoding/json makes of it.
func (p *parser) string() (value string) {
	from, plain := p.at, true
	for p.at++; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			plain = false
			p.at++
		}
	}
	p.at++
	value = p.shared[from+1 : p.at-1]
	if !plain || !utf8.ValidString(value) {
		_ = json.Unmarshal(p.text[from:p.at], &value) // it is valid
	}
	return value
}

// members parses the members of the container n, and goes behind its end.
func (p *parser) members(n *node, add func(*member)) {
	for p.at++; ; p.at++ {
		from := p.at
		begin := p.skip(from, "")
		if c := p.text[begin]; c == '}' || c == ']' { // it is empty
			p.at = begin + 1
			return
		}
		m := &member{}
		if p.at = begin; n.kind == '{' {
			m.name, m.named = p.string(), true
			p.at = p.skip(p.at, ":")
		}
		m.node = p.value()
		after := p.skip(m.end, "")
		m.pre, m.head, m.post = p.shared[from:begin], p.shared[begin:m.start], p.shared[m.end:after]
		n.members = append(n.members, m)
		add(m)
		if p.at = after; p.text[after] != ',' {
			p.at++
			return
		}
	}
}
