package tables

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// fieldSet is the set of fields that encoding/json finds in a type.
type fieldSet struct {
	byName map[string]field
	every  *field // set if the type accepts any name: a map
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

var jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()

var fieldSets sync.Map // by reflect.Type

// fieldsOf returns the fields of a type. They are collected once.
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
	case at.Kind() == reflect.Map && at.Key().Kind() == reflect.String:
		s.every = &field{t: at.Elem()}
	case at.Kind() == reflect.Struct && !reflect.PointerTo(at).Implements(jsonUnmarshaler):
		s.collect(at)
	default:
		return s, fmt.Errorf("%v cannot be an entity; use a struct, a map with string keys, or Properties", t)
	}
	fieldSets.Store(t, s)
	return s, nil
}

// collect collects the fields. Of those with the same name, the least deeply embedded counts.
func (s *fieldSet) collect(t reflect.Type) {
	depth := map[string]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Anonymous && name == "" && f.Type.Kind() != reflect.Interface && goTypes[f.Type] == ""
		if !f.IsExported() || embedded || name == "-" && options == "" {
			continue
		}
		name = cmp.Or(name, f.Name)
		if known, hidden := depth[name]; hidden && known <= len(f.Index) {
			continue
		}
		depth[name] = len(f.Index)
		s.byName[name] = field{t: f.Type, quoted: strings.Contains(","+options+",", ",string,")}
	}
}

// literalFor returns the value as the field's type reads it: as a number if the field is a number.
func (p Property) literalFor(f field) json.RawMessage {
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
	if f.quoted {
		return quoted(text)
	}
	return json.RawMessage(text)
}
