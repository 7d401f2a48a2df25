package tables

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// systemProperties are not part of the value: a struct may name them to read them, and a write ignores them.
var systemProperties = []string{"PartitionKey", "RowKey", "Timestamp"}

// decodeInto decodes properties into the value that to points to.
func decodeInto(e storedEntity, to any) error {
	if v := reflect.ValueOf(to); v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("the entity cannot be decoded into a %T that is not a pointer, or nil; give a pointer to a value", to)
	}
	switch v := to.(type) {
	case *Properties:
		*v = maps.Clone(e.properties)
		return nil
	case *map[string]any:
		*v = make(map[string]any, len(e.properties))
		for name, p := range e.properties {
			value, err := p.native()
			if err != nil {
				return fmt.Errorf("property %q: %w", name, err)
			}
			(*v)[name] = value
		}
		return nil
	}
	at := reflect.TypeOf(to).Elem()
	fields, err := fieldsOf(at)
	if err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	for name, p := range e.properties {
		if field, ok := fields.find(name); ok {
			members[name] = p.literalFor(field)
		}
	}
	for i, text := range []string{e.partition, e.row, e.timestamp} {
		if _, named := fields.byName[systemProperties[i]]; named && text != "" {
			members[systemProperties[i]] = quoted(text)
		}
	}
	data, err := json.Marshal(members)
	if err != nil {
		return err
	}
	if err := unmarshal(data, to); err != nil {
		return fmt.Errorf("the entity does not fit %v: %w", at, err)
	}
	return nil
}

// native is Any, but returns types that keep their EDM type when the value is written back.
func (p Property) native() (any, error) {
	if p.Type == EDMGUID {
		return aztables.EDMGUID(p.Value), nil
	}
	return p.Any()
}

// encodeValue returns the properties for the members of value. known are the entity's stored properties, for their
// types. If a member of a struct cannot be a property, the error names it, and the others are returned too.
func encodeValue(value any, known Properties) (Properties, error) {
	if p, ok := value.(Properties); ok {
		out := make(Properties, len(p))
		for name, one := range p {
			var err error
			if out[name], err = typed(one.Type, one.Value); err != nil {
				return nil, fmt.Errorf("property %q: %w", name, err)
			}
		}
		return out, nil
	}
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer {
		v = v.Elem() // invalid if it is nil
	}
	if v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String {
		return encodeMap(v, known)
	}
	return encodeStruct(v, known)
}

// encodeMap returns the properties for the members of a map. A nil member is skipped.
func encodeMap(m reflect.Value, known Properties) (Properties, error) {
	out := make(Properties, m.Len())
	for _, key := range m.MapKeys() {
		name := key.String()
		if strings.HasPrefix(name, "odata.") || name == "Timestamp" {
			continue
		}
		p, err := propertyFrom(m.MapIndex(key).Interface(), known[name])
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", name, err)
		}
		if p != (Property{}) {
			out[name] = p
		}
	}
	return out, nil
}

func encodeStruct(v reflect.Value, known Properties) (Properties, error) {
	if !v.IsValid() {
		return nil, fmt.Errorf("nil is not an entity; give a struct, a map with string keys, or Properties")
	}
	fields, err := fieldsOf(v.Type())
	if err != nil {
		return nil, err
	}
	var members map[string]any
	lossy, err := throughJSON(v.Interface(), &members)
	if err != nil {
		return nil, fmt.Errorf("%v does not encode to a JSON object: %w", v.Type(), err)
	}
	out := make(Properties, len(members))
	var failed error
	for name, literal := range members {
		if strings.HasPrefix(name, "odata.") || name == "Timestamp" || literal == nil {
			continue
		}
		field, _ := fields.find(name)
		if p, err := propertyAs(literal, lossy, field.t, known[name]); err == nil {
			out[name] = p
		} else {
			failed = fmt.Errorf("property %q: %w", name, err)
		}
	}
	return out, failed
}

// propertyFrom returns the Property for a Go value, by way of its JSON. The zero Property stands for null.
func propertyFrom(value any, known Property) (Property, error) {
	switch v := value.(type) {
	case Property:
		return typed(v.Type, v.Value)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Property{EDMDouble, formatDouble(v)}, nil // JSON has no such number
		}
	}
	var literal any
	lossy, err := throughJSON(value, &literal)
	if err != nil || literal == nil {
		return Property{}, err
	}
	return propertyAs(literal, lossy, reflect.TypeOf(value), known)
}

// throughJSON decodes the JSON of value into to. It is lossy if bytes that are not valid text were replaced: encoding/json
// writes this escape, whose backslash follows no other, for nothing else.
func throughJSON(value, to any) (lossy bool, err error) {
	data, err := json.Marshal(value)
	if err != nil {
		return false, err
	}
	const replaced = `\ufffd`
	if text := string(data); strings.Contains(text, replaced) {
		lossy = strings.Contains(strings.ReplaceAll(text, `\\`, ""), replaced)
	}
	return lossy, unmarshal(data, to)
}

// propertyAs returns the Property for a decoded literal. Its type is that of the property that it replaces if the value
// fits, or else the type for its Go type. lossy means that a text may have lost bytes.
func propertyAs(literal any, lossy bool, t reflect.Type, known Property) (Property, error) {
	text, quoted, err := literalText(literal)
	if err != nil {
		return Property{}, err
	}
	if lossy && strings.ContainsRune(text, utf8.RuneError) {
		return Property{}, fmt.Errorf("%q is not valid text; store bytes as a Binary", text)
	}
	natural := naturalType(t, text, quoted)
	if known.Type != "" && known.Type.spelled(quoted) && !(known.Type == EDMDouble && quoted) {
		if p, err := typed(known.Type, text); err == nil && known.Type.holds(text) {
			return p, nil
		}
	}
	if !natural.spelled(quoted) {
		natural = looksLike(text, quoted)
	}
	return typed(natural, text)
}

// holds reports whether the type represents a number without loss: a Double does not represent every Int64.
func (t EDM) holds(text string) bool {
	if t != EDMDouble {
		return true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return err != nil || n >= -1<<53 && n <= 1<<53
}

var goTypes = map[reflect.Type]EDM{
	reflect.TypeFor[time.Time]():            EDMDateTime,
	reflect.TypeFor[[]byte]():               EDMBinary,
	reflect.TypeFor[aztables.EDMDateTime](): EDMDateTime,
	reflect.TypeFor[aztables.EDMBinary]():   EDMBinary,
	reflect.TypeFor[aztables.EDMGUID]():     EDMGUID,
	reflect.TypeFor[aztables.EDMInt64]():    EDMInt64,
}

// naturalType returns the EDM type of a Go type. If that is not definite, the form of the literal decides.
func naturalType(t reflect.Type, text string, quoted bool) EDM {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return looksLike(text, quoted)
	}
	if edm, ok := goTypes[t]; ok {
		return edm
	}
	switch t.Kind() {
	case reflect.Int64, reflect.Uint32, reflect.Uint64:
		if !quoted || strings.TrimLeft(text, "-0123456789") == "" {
			return EDMInt64
		}
	case reflect.Float32, reflect.Float64:
		return EDMDouble
	}
	return looksLike(text, quoted)
}
