package jsonform

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/itchyny/gojq"
	"github.com/tailscale/hujson"
)

// Rewrite returns value as a text with the form of d. New members come last, sorted. It can be called once.
func (d *Doc) Rewrite(value any) ([]byte, error) {
	if err := d.rewrite(&d.root, d.Value(), value, d.line); err != nil {
		return nil, err
	}
	return d.root.Pack(), nil
}

// rewrite makes v, which holds old and begins at line, hold value.
func (d *Doc) rewrite(v *hujson.Value, old, value any, line string) (err error) {
	if same(old, value) {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		if o, ok := v.Value.(*hujson.Object); ok {
			return d.members(o, old.(map[string]any), value, line) //nolint:forcetypeassert // as decoded
		}
	case []any:
		if a, ok := v.Value.(*hujson.Array); ok {
			return d.elements(a, old.([]any), value, line) //nolint:forcetypeassert // as decoded
		}
	}
	v.Value, err = d.fresh(value, line)
	return err
}

func (d *Doc) members(o *hujson.Object, old, value map[string]any, line string) (err error) {
	l := d.layoutOf(o, line)
	last := map[string]int{} // of several members with one name the last one counts
	for i, m := range o.Members {
		last[nameOf(m)] = i
	}
	all := o.Members
	o.Members = make([]hujson.ObjectMember, 0, len(value))
	for i, m := range all {
		name := nameOf(m)
		if after, there := value[name]; there && last[name] == i {
			if err := d.rewrite(&m.Value, old[name], after, l.line); err != nil {
				return err
			}
			o.Members = append(o.Members, m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if _, there := old[name]; !there {
			added, err := d.fresh(value[name], l.line)
			if err != nil {
				return err
			}
			d.add(o, all, name, added)
		}
	}
	l.restore(o)
	return nil
}

// add appends a member that looks like the others.
func (d *Doc) add(o *hujson.Object, others []hujson.ObjectMember, name string, value hujson.ValueTrimmed) {
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: hujson.Value{Value: value, BeforeExtra: hujson.Extra(d.colon)}}
	if n := len(others); n > 0 {
		m.Name.AfterExtra, m.Value.BeforeExtra = hujson.Extra(space(others[n-1].Name.AfterExtra)), hujson.Extra(space(others[n-1].Value.BeforeExtra))
	}
	o.Members = append(o.Members, m)
}

// elements keeps the elements that are equal at the beginning and at the end, and rewrites those between in their places.
func (d *Doc) elements(a *hujson.Array, old, value []any, line string) error {
	l := d.layoutOf(a, line)
	start, end := 0, 0
	for start < min(len(old), len(value)) && same(old[start], value[start]) {
		start++
	}
	for end < min(len(old), len(value))-start && same(old[len(old)-1-end], value[len(value)-1-end]) {
		end++
	}
	all := a.Elements
	a.Elements = append(make([]hujson.Value, 0, len(value)), all[:start]...)
	for i := start; i < len(value)-end; i++ {
		e, err := hujson.Value{}, error(nil)
		if i < len(old)-end {
			e = all[i]
			err = d.rewrite(&e, old[i], value[i], l.line)
		} else {
			e.Value, err = d.fresh(value[i], l.line)
		}
		if err != nil {
			return err
		}
		a.Elements = append(a.Elements, e)
	}
	a.Elements = append(a.Elements, all[len(all)-end:]...)
	l.restore(a)
	return nil
}

// fresh returns a value that begins at line, and looks like the rest of the document.
func (d *Doc) fresh(value any, line string) (hujson.ValueTrimmed, error) {
	text, err := gojq.Marshal(value)
	if err != nil {
		return nil, err
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	d.lay(&v, line)
	return v.Value, nil
}

// Step leads to a member of an object or an element of a list.
type Step struct {
	Name  string // of the member; of an element if it is a number
	Index int    // of the element
	List  bool   // Index counts, and Name does not
}

// Set sets the value that path leads to. It makes missing objects and lists, and refuses to replace anything else on the way.
func (d *Doc) Set(path []Step, value any) error {
	after, err := put(d.Value(), path, value)
	if err != nil {
		return err
	}
	return d.rewrite(&d.root, d.Value(), after, d.line)
}

// put returns in with the value that path leads to.
func put(in any, path []Step, value any) (_ any, err error) {
	if len(path) == 0 {
		return value, nil
	}
	step := path[0]
	switch c := in.(type) {
	case nil:
		if step.List {
			return put([]any{}, path, value)
		}
		return put(map[string]any{}, path, value)
	case map[string]any:
		if step.List {
			return nil, fmt.Errorf("[%d] is a path into an object, and not an array", step.Index)
		}
		c[step.Name], err = put(c[step.Name], path[1:], value)
		return c, err
	case []any:
		i := step.Index
		if !step.List {
			i, err = strconv.Atoi(step.Name)
		}
		if err != nil || i < 0 || i > len(c) {
			return nil, fmt.Errorf("%q is not an index of an array of %d", step.String(), len(c))
		}
		if i == len(c) {
			c = append(c, nil)
		}
		c[i], err = put(c[i], path[1:], value)
		return c, err
	}
	return nil, fmt.Errorf("%q is a path into something that is neither an object nor an array", step.String())
}

func (s Step) String() string {
	if s.List {
		return fmt.Sprint(s.Index)
	}
	return s.Name
}

// Text returns the document.
func (d *Doc) Text() []byte { return d.root.Pack() }
