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
	return d.laid(text, line)
}

// laid is fresh for a text, whose order and numbers stay.
func (d *Doc) laid(text []byte, line string) (hujson.ValueTrimmed, error) {
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	v.Minimize()
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
func (d *Doc) Set(path []Step, value []byte) error {
	v, line := &d.root, d.line
	for _, step := range path {
		if literal, ok := v.Value.(hujson.Literal); ok && literal.Kind() == 'n' {
			v.Value = &hujson.Object{}
			if step.List {
				v.Value = &hujson.Array{}
			}
		}
		l := d.layoutOf(v.Value, line)
		next := (*hujson.Value)(nil)
		switch c := v.Value.(type) {
		case *hujson.Object:
			if step.List {
				return fmt.Errorf("[%d] is a path into an object, and not an array", step.Index)
			}
			if !slices.ContainsFunc(c.Members, step.names) {
				d.add(c, c.Members, step.Name, hujson.Literal("null"))
			}
			for i, m := range c.Members {
				if step.names(m) { // the last of several counts
					next = &c.Members[i].Value
				}
			}
		case *hujson.Array:
			i, err := step.Index, error(nil)
			if !step.List {
				i, err = strconv.Atoi(step.Name)
			}
			if err != nil || i < 0 || i > len(c.Elements) {
				return fmt.Errorf("%q is not an index of an array of %d", step.String(), len(c.Elements))
			}
			if i == len(c.Elements) {
				c.Elements = append(c.Elements, hujson.Value{Value: hujson.Literal("null")})
			}
			next = &c.Elements[i]
		default:
			return fmt.Errorf("%q is a path into something that is neither an object nor an array", step.String())
		}
		l.restore(v.Value)
		v, line = next, l.line
	}
	after, err := d.laid(value, line)
	if err == nil && !same(decode(v.Value), decode(after)) {
		v.Value = after
	}
	return err
}

func (s Step) names(m hujson.ObjectMember) bool { return nameOf(m) == s.Name }

func (s Step) String() string {
	if s.List {
		return fmt.Sprint(s.Index)
	}
	return s.Name
}

// Text returns the document.
func (d *Doc) Text() []byte { return d.root.Pack() }
