// Package jsonform changes a JSON text and keeps the form of what does not change: the order of members, numbers as they are
// written, indentation, and the comments and trailing commas that some files of settings have.
package jsonform

import (
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
	"github.com/tailscale/hujson"
)

// Doc is a JSON text whose values can be changed.
type Doc struct {
	root hujson.Value
	style
}

// deepest is the limit of encoding/json. The parser calls itself for each level.
const deepest = 10000

var errTooDeep = errors.New("it is nested more than 10,000 levels deep")

// Parse parses the text of one JSON value.
func Parse(text []byte) (*Doc, error) {
	if depth(text) > deepest {
		return nil, errTooDeep
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	return &Doc{root: root, style: styleOf(&root)}, nil
}

// unnested is what brackets do not count in: strings and comments.
var unnested = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"?|//[^\n]*|/\*.*?\*/`)

// depth returns how deep a text is nested, or more if it is no JSON.
func depth(text []byte) (deepest int) {
	level := 0
	for _, c := range unnested.ReplaceAll(text, nil) {
		switch c {
		case '[', '{':
			level++
			deepest = max(deepest, level)
		case ']', '}':
			level--
		}
	}
	return deepest
}

// Value returns the value as encoding/json decodes it, with numbers as they are written.
func (d *Doc) Value() any { return decode(d.root.Value) }

func decode(v hujson.ValueTrimmed) any {
	switch v := v.(type) {
	case *hujson.Object:
		members := make(map[string]any, len(v.Members))
		for _, m := range v.Members {
			members[nameOf(m)] = decode(m.Value.Value)
		}
		return members
	case *hujson.Array:
		elements := make([]any, len(v.Elements))
		for i, e := range v.Elements {
			elements[i] = decode(e.Value)
		}
		return elements
	}
	literal, _ := v.(hujson.Literal)
	switch literal.Kind() {
	case '0':
		return json.Number(literal)
	case '"':
		return literal.String()
	case 'n':
		return nil
	}
	return literal.Bool()
}

func nameOf(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return name.String()
}

// same reports whether two values are equal, long numbers to their last digit.
func same(a, b any) bool {
	switch b := b.(type) {
	case map[string]any:
		a, ok := a.(map[string]any)
		return ok && maps.EqualFunc(a, b, same)
	case []any:
		a, ok := a.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case json.Number:
		if a, ok := a.(json.Number); ok && (len(a) > 15 || len(b) > 15) {
			return a == b
		}
	}
	return gojq.Compare(a, b) == 0
}
