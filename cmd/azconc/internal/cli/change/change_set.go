package change

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/jsonform"
)

// SetChange sets members of a JSON document. A path is dotted; a backslash escapes a dot. In an array, a
// part of the path is an index.
type SetChange struct {
	assignments []assignment
}

type assignment struct {
	path  []string
	text  string
	value any
	json  bool // the text is a JSON value, and not a string without its quotes
}

func newSetChange(args []string) (*SetChange, error) {
	c := &SetChange{}
	for _, arg := range args {
		path, text, ok := strings.Cut(arg, "=")
		if !ok || path == "" {
			return nil, fail.Usagef("--set %q is not path=value", arg)
		}
		parts := splitPath(path)
		for _, p := range parts {
			if p == "" {
				return nil, fail.WithHint(fail.Usagef("--set %q: the path has an empty part", arg), `a dot in a name is written \.`)
			}
		}
		c.add(parts, text)
	}
	return c, nil
}

// NewSetProperties returns a SetChange for an entity, whose properties have names instead of paths.
func NewSetProperties(args []string) (*SetChange, error) {
	c := &SetChange{}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, fail.Usagef("--set %q is not name=value", arg)
		}
		name = strings.ReplaceAll(name, `\.`, ".")
		for i, r := range strings.TrimSuffix(name, TypeSuffix) {
			if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
				return nil, fail.WithHint(fail.Usagef("--set %q: a property's name cannot have %q there", arg, r), "a name has letters, digits and underscores, and does not begin with a digit")
			}
		}
		c.add([]string{name}, text)
	}
	return c, nil
}

func (c *SetChange) add(path []string, text string) {
	value, isJSON := parseValue(text)
	c.assignments = append(c.assignments, assignment{path: path, text: text, value: value, json: isJSON})
}

// parseValue parses text as JSON if it is valid JSON, and as a string otherwise.
func parseValue(text string) (value any, isJSON bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return text, false
	}
	if _, err := d.Token(); err != io.EOF {
		return text, false
	}
	return value, true
}

func splitPath(path string) []string {
	var parts []string
	var part strings.Builder
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path) && (path[i+1] == '.' || path[i+1] == '\\'):
			i++
			part.WriteByte(path[i])
		case path[i] == '.':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(path[i])
		}
	}
	return append(parts, part.String())
}

func (c *SetChange) Apply(_ context.Context, base BaseContent) ([]byte, error) {
	var document any = map[string]any{}
	var err error
	if base.Exists {
		if document, err = decodeJSON(base.Data); err != nil {
			return nil, err
		}
	}
	var like [][]byte
	for _, a := range c.assignments {
		if document, err = setPath(document, a.path, a.value); err != nil {
			return nil, &fail.FilterError{What: "--set " + strings.Join(a.path, "."), Err: err}
		}
		if a.json {
			like = append(like, []byte(a.text))
		}
	}
	data, err := jsonform.Rewrite(base.Data, document, like...)
	if err != nil {
		return nil, &fail.FilterError{What: "--set", Err: err}
	}
	return data, nil
}

// setPath returns node with value at path. It creates missing objects and refuses to replace anything else.
func setPath(node any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch n := node.(type) {
	case nil:
		child, err := setPath(nil, path[1:], value)
		return map[string]any{path[0]: child}, err
	case map[string]any:
		child, err := setPath(n[path[0]], path[1:], value)
		n[path[0]] = child
		return n, err
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(n) {
			return nil, fmt.Errorf("%q is not an index of an array of %d", path[0], len(n))
		}
		if i == len(n) {
			n = append(n, nil)
		}
		n[i], err = setPath(n[i], path[1:], value)
		return n, err
	default:
		return nil, fmt.Errorf("%q is a path into something that is neither an object nor an array", path[0])
	}
}
