package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// setChange sets members of a JSON document. A path is dotted; a backslash takes the meaning from a dot; where the
// document has an array, a part of the path is an index.
type setChange struct {
	assignments []assignment
}

type assignment struct {
	path  []string
	value any
}

func newSetChange(args []string) (change, error) {
	c := &setChange{}
	for _, arg := range args {
		path, text, ok := strings.Cut(arg, "=")
		if !ok || path == "" {
			return nil, usagef("--set %q is not path=value", arg)
		}
		parts := splitPath(path)
		for _, p := range parts {
			if p == "" {
				return nil, withHint(usagef("--set %q: the path has an empty part", arg), `a dot in a name is written \.`)
			}
		}
		c.assignments = append(c.assignments, assignment{path: parts, value: parseValue(text)})
	}
	return c, nil
}

// parseValue takes JSON for what it says, and anything else for a string.
func parseValue(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	if _, err := d.Token(); err != io.EOF {
		return text
	}
	return v
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

func (c *setChange) apply(_ context.Context, base baseContent) ([]byte, error) {
	var before, after any = nil, map[string]any{}
	if base.Exists {
		var err error
		if before, err = decodeJSON(base.Data); err != nil {
			return nil, err
		}
		after, _ = decodeJSON(base.Data)
	}
	for _, a := range c.assignments {
		var err error
		if after, err = setPath(after, a.path, a.value); err != nil {
			return nil, &filterError{what: "--set " + strings.Join(a.path, "."), err: err}
		}
	}
	if base.Exists && gojq.Compare(before, after) == 0 {
		return base.Data, nil
	}
	data, err := gojq.Marshal(after)
	if err != nil {
		return nil, &filterError{what: "--set", err: err}
	}
	return sameEnd(base.Data, data), nil
}

// setPath returns node with value at path. Missing objects are made on the way; other things are not overwritten.
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
		return nil, fmt.Errorf("%q is looked for in something that is neither an object nor an array", path[0])
	}
}
