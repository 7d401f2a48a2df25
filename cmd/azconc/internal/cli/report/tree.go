package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
)

// tree is a JSON value: nil, a bool, a string, a float64, a json.Number that no float64 is, a []any or a map[string]any. order has the
// names of its objects in their order, by the address of the map; an object that a query has made is not in it.
type tree struct {
	data    any
	order   map[uintptr][]string
	made    []string // the names of objects that a query makes, in the order of the expression
	columns []string // of a list of objects, present or not; nil is those of the objects
	heading string   // of the only column of a list of scalars
	first   string   // the first member that is a list
}

func addressOf(m map[string]any) uintptr { return reflect.ValueOf(m).Pointer() }

// treeOf returns the tree of a value's JSON.
func treeOf(value any) (*tree, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	d := json.NewDecoder(&b)
	d.UseNumber()
	t := &tree{order: map[uintptr][]string{}}
	var err error
	t.data, err = t.read(d)
	if object, ok := t.data.(map[string]any); ok {
		for _, name := range t.names(object) {
			if _, list := object[name].([]any); list && t.first == "" {
				t.first = name
			}
		}
	}
	return t, err
}

func (t *tree) read(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		return number(token), nil
	case json.Delim:
		if token == '[' {
			list := []any{}
			for d.More() {
				element, err := t.read(d)
				if err != nil {
					return nil, err
				}
				list = append(list, element)
			}
			_, err := d.Token()
			return list, err
		}
		return t.object(d)
	}
	return token, nil
}

func (t *tree) object(d *json.Decoder) (any, error) {
	object := map[string]any{}
	var names []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, errors.New("a member without a name")
		}
		if object[name], err = t.read(d); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	t.order[addressOf(object)] = names
	_, err := d.Token()
	return object, err
}

// number returns the float64 that a query can compare. A number that no float64 is stays as it is written: to print it exactly
// is worth more than to compare it.
func number(n json.Number) any {
	f, err := n.Float64()
	if err != nil || plain(f) != n.String() {
		return n
	}
	return f
}

// plain writes a number as JSON does, an integer as such.
func plain(f float64) string {
	text, err := json.Marshal(f)
	if err != nil {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return string(text)
}

// names returns the names of an object in the order of the JSON, or of the expression that has made it.
func (t *tree) names(object map[string]any) []string {
	if names, known := t.order[addressOf(object)]; known && len(names) == len(object) {
		return names
	}
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		at, bt := slices.Index(t.made, a), slices.Index(t.made, b)
		switch {
		case at >= 0 && bt >= 0:
			return at - bt
		case at != bt:
			return bt - at // those of the expression first
		case a < b:
			return -1
		}
		return 1
	})
	return names
}

func (t *tree) firstList() string {
	if t.first == "" {
		return "outcome"
	}
	return t.first
}

// json writes the tree in one line.
func (t *tree) json(w *bytes.Buffer) error {
	if err := t.encode(w, t.data); err != nil {
		return err
	}
	return w.WriteByte('\n')
}

func (t *tree) encode(w *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case []any:
		w.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := t.encode(w, element); err != nil {
				return err
			}
		}
		w.WriteByte(']')
		return nil
	case map[string]any:
		w.WriteByte('{')
		for i, name := range t.names(v) {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := t.encode(w, name); err != nil {
				return err
			}
			w.WriteByte(':')
			if err := t.encode(w, v[name]); err != nil {
				return err
			}
		}
		w.WriteByte('}')
		return nil
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	w.Truncate(w.Len() - 1) // the encoder ends its values with a newline
	return nil
}
