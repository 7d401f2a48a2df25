package tables

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// fieldSet is the set of fields that encoding/json finds in a type.
type fieldSet struct {
	byName map[string]field
	every  *field // set if the type accepts any name: a map, or a type with its own UnmarshalJSON
}

type field struct {
	t      reflect.Type
	quoted bool // ",string"
}

func (s fieldSet) find(name string) (field, bool) {
	if f, ok := s.byName[name]; ok {
		return f, true
	}
	if s.every != nil {
		return *s.every, true
	}
	return field{}, false
}

var fieldSets sync.Map // reflect.Type to fieldSet

var jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()

func fieldsOf(t reflect.Type) (fieldSet, error) {
	if known, ok := fieldSets.Load(t); ok {
		return known.(fieldSet), nil
	}
	s := fieldSet{byName: map[string]field{}}
	at := t
	for at.Kind() == reflect.Pointer {
		at = at.Elem()
	}
	switch {
	case reflect.PointerTo(at).Implements(jsonUnmarshaler):
		s.every = &field{}
		if at.Kind() == reflect.Struct {
			s.collect(at)
		}
	case at.Kind() == reflect.Map && at.Key().Kind() == reflect.String:
		s.every = &field{t: at.Elem()}
	case at.Kind() == reflect.Struct:
		s.collect(at)
	default:
		return s, fmt.Errorf("%v cannot be an entity; use a struct, a map with string keys, or Properties", t)
	}
	fieldSets.Store(t, s)
	return s, nil
}

// collect collects the fields level by level, so that a field hides embedded fields of the same name.
func (s *fieldSet) collect(t reflect.Type) {
	for level, next := []reflect.Type{t}, []reflect.Type(nil); len(level) > 0; level, next = next, nil {
		for _, at := range level {
			for i := range at.NumField() {
				f := at.Field(i)
				tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
				inner := f.Type
				if inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				switch {
				case tag == "-" && options == "":
					continue
				case f.Anonymous && tag == "" && inner.Kind() == reflect.Struct && goTypes[inner] == "":
					next = append(next, inner)
					continue
				case !f.IsExported():
					continue
				case tag == "":
					tag = f.Name
				}
				if _, hidden := s.byName[tag]; !hidden {
					s.byName[tag] = field{t: f.Type, quoted: strings.Contains(","+options+",", ",string,")}
				}
			}
		}
	}
}

// literalFor returns the value as the field's type reads it: as a number if the field is a number.
func (p Property) literalFor(f field) literal {
	t := f.t
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return p.literal()
	}
	number := t.Kind() == reflect.Interface || reflect.Int <= t.Kind() && t.Kind() <= reflect.Float64
	if goTypes[t] != "" || !number || p.Type != EDMInt64 && p.Type != EDMInt32 && p.Type != EDMDouble || p.special() {
		return p.literal()
	}
	text := p.Value
	if whole, ok := strings.CutSuffix(text, ".0"); ok && t.Kind() <= reflect.Uintptr && p.Type == EDMDouble {
		text = whole
	}
	return literal{text, f.quoted}
}
