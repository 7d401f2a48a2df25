package jsonform

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/itchyny/gojq"
)

// node is a value in a text.
type node struct {
	kind       byte // '{', '[', or 0 for a scalar
	start, end int
	text       []byte
	value      any
	members    []*member
}

// member is an element of a list, or a member of an object, with the whitespace around it.
type member struct {
	*node
	named bool
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

// parse reads the text of one JSON value.
func parse(text []byte) (*node, error) {
	p := &parser{d: decoder(text), text: text}
	n, err := p.value()
	if err != nil {
		return nil, err
	}
	if _, err := p.d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return n, nil
}

type parser struct {
	d    *json.Decoder
	text []byte
}

// skip returns the position of the first byte from i on that is neither whitespace nor one of also.
func (p *parser) skip(i int, also string) int {
	for i < len(p.text) && strings.IndexByte(" \t\r\n"+also, p.text[i]) >= 0 {
		i++
	}
	return i
}

func (p *parser) at() int { return int(p.d.InputOffset()) }

func (p *parser) value() (*node, error) {
	n := &node{start: p.skip(p.at(), ",:")}
	token, err := p.d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		n.kind = '{'
		value := map[string]any{}
		err = p.members(n, func(m *member) { value[m.name] = m.value })
		n.value = value
	case json.Delim('['):
		n.kind = '['
		value := []any{}
		err = p.members(n, func(m *member) { value = append(value, m.value) })
		n.value = value
	default:
		n.value = token
	}
	n.end = p.at()
	n.text = p.text[n.start:n.end]
	return n, err
}

// members parses the members of the container n, and returns its end.
func (p *parser) members(n *node, add func(*member)) error {
	for from := p.at(); p.d.More(); {
		m := &member{}
		begin := p.skip(from, "")
		if n.kind == '{' {
			token, err := p.d.Token()
			if err != nil {
				return err
			}
			m.name, m.named = token.(string)
		}
		var err error
		if m.node, err = p.value(); err != nil {
			return err
		}
		after := p.skip(m.end, "")
		m.pre, m.head, m.post = string(p.text[from:begin]), string(p.text[begin:m.start]), string(p.text[m.end:after])
		n.members = append(n.members, m)
		add(m)
		from = after + 1
	}
	_, err := p.d.Token()
	return err
}
