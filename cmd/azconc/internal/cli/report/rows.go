package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Rower is a result, or an element of its list, whose row in a table is not its JSON.
type Rower interface {
	// TableRow returns a value whose JSON is an object, such as a Row.
	TableRow() any
}

// Row is an object with its members in order.
type Row []Member

// Member is a member of an object.
type Member struct {
	Name  string
	Value any
}

// MarshalJSON returns the object. It fails if a value has no JSON.
func (r Row) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, m := range r {
		b.WriteByte("{,"[min(i, 1)])
		name, err := json.Marshal(m.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.Value)
		if err != nil {
			return nil, err
		}
		b.Write(append(append(name, ':'), value...))
	}
	if len(r) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// rowsTag is the key of a struct tag: `rows:"-"` says of a list that it is not what the result is about.
const rowsTag = "rows"

// rowsOf returns the tree that a table shows without a query: the elements of the result's list, if it has exactly one, or the result
// itself. What is a list, and which columns there are, depends on the type and not on the data.
func rowsOf(result any) (*tree, error) {
	value := reflect.Indirect(reflect.ValueOf(result))
	if r, ok := result.(Rower); ok {
		return treeOf(r.TableRow())
	}
	if value.Kind() != reflect.Struct || isMarshaler(value.Type()) {
		return treeOf(result)
	}
	var lists, all []reflect.StructField
	eachMember(value.Type(), nil, func(f reflect.StructField, name string, optional bool) {
		all = append(all, f)
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8 && !optional && f.Tag.Get(rowsTag) != "-" {
			lists = append(lists, f)
		}
	})
	if len(lists) != 1 {
		t, err := treeOf(result)
		if err == nil {
			t.columns = memberNames(value.Type())
		}
		return t, err
	}
	list := value.FieldByIndex(lists[0].Index)
	elements := list.Interface()
	columns := []string(nil)
	element := list.Type().Elem()
	switch {
	case element.Implements(reflect.TypeFor[Rower]()):
		rows := make([]any, list.Len())
		for i := range rows {
			rows[i] = list.Index(i).Interface().(Rower).TableRow() //nolint:forcetypeassert // as Implements says
		}
		elements = rows
	case element.Kind() == reflect.Struct && !isMarshaler(element):
		columns = memberNames(element)
	}
	if list.IsNil() {
		elements = []any{}
	}
	t, err := treeOf(elements)
	if err == nil {
		t.columns, t.heading = columns, memberName(lists[0])
	}
	return t, err
}

func isMarshaler(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
}

func memberNames(t reflect.Type) (names []string) {
	eachMember(t, nil, func(_ reflect.StructField, name string, _ bool) { names = append(names, name) })
	return names
}

func memberName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return f.Name
	}
	return name
}

// eachMember calls visit for the members of a struct's JSON, in their order. The index of a field is that in the outermost struct.
func eachMember(t reflect.Type, above []int, visit func(f reflect.StructField, name string, optional bool)) {
	for i := range t.NumField() {
		f := t.Field(i)
		f.Index = append(append([]int{}, above...), i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			eachMember(f.Type, f.Index, visit)
			continue
		}
		if f.IsExported() {
			visit(f, memberName(f), strings.Contains(tag, ",omit"))
		}
	}
}
