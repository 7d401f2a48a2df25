package tables

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Properties are the properties of an entity with their types, without PartitionKey, RowKey and Timestamp. As the T of
// an Entity they give access to all stored properties, exactly as they are stored.
//
// Their JSON has the form that the service writes: an object in which a member "name@odata.type" stands next to a
// member whose value does not show its type (Int64, DateTime, Guid, Binary, and Doubles that are whole numbers).
// Programs that convert numbers to floating point (jq, JavaScript) can edit such an object without changing the types.
type Properties map[string]Property

const typeSuffix = "@odata.type"

// MarshalJSON implements json.Marshaler. Members are sorted by name.
func (p Properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, name := range p.names() {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		if err := p[name].write(&b, name); err != nil {
			return nil, fmt.Errorf("property %q: %w", name, err)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// names returns the names of the properties, sorted.
func (p Properties) names() []string {
	return slices.Sorted(maps.Keys(p))
}

// UnmarshalJSON implements json.Unmarshaler; it is the inverse of MarshalJSON. It skips null values, as the service
// does, and members that belong to the entity itself (keys, Timestamp, odata.*). A number without a type is an Int32
// or, with a point or an exponent, a Double. An integer that does not fit 32 bits is an Int64, where the service itself
// would store a Double.
func (p *Properties) UnmarshalJSON(data []byte) error {
	e, err := parseEntity(data)
	if err != nil {
		return err
	}
	*p = e.properties
	return nil
}

// write writes the property as a member of an object. The type of a Double that is a whole number is named, because
// programs that read it as floating point and write it again, as the SDK does, drop its point.
func (p Property) write(b *bytes.Buffer, name string) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.Type.annotated() || p.Type == EDMDouble && (p.special() || p.whole()) {
		fmt.Fprintf(b, "%s:%q,", quoted(name+typeSuffix), p.Type)
	}
	fmt.Fprintf(b, "%s:%s", quoted(name), p.literal())
	return nil
}

// annotated reports whether the type is always named next to the value.
func (t EDM) annotated() bool {
	return t == EDMInt64 || t == EDMDateTime || t == EDMGUID || t == EDMBinary
}

// literal returns the value as JSON.
func (p Property) literal() json.RawMessage {
	if p.Type == EDMBoolean || p.Type == EDMInt32 || p.Type == EDMDouble && !p.special() {
		return json.RawMessage(p.Value)
	}
	return quoted(p.Value)
}

// quoted returns a string in JSON.
func quoted(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// storedEntity is an entity as the service wrote it.
type storedEntity struct {
	etag, partition, row, timestamp string
	properties                      Properties
}

// parseEntity reads an entity's JSON without passing numbers through floating point.
func parseEntity(data []byte) (storedEntity, error) {
	var members map[string]any
	if err := unmarshal(data, &members); err != nil {
		return storedEntity{}, fmt.Errorf("not an entity: %w", err)
	}
	e := storedEntity{properties: make(Properties, len(members))}
	for name, value := range members {
		if to := e.system(name); to != nil {
			text, ok := value.(string)
			if !ok && value != nil {
				return e, fmt.Errorf("%s is %v, not a string", name, value)
			}
			*to = text
			continue
		}
		if ownedByProtocol(name) || value == nil {
			continue
		}
		annotation, ok := members[name+typeSuffix].(string)
		if !ok && members[name+typeSuffix] != nil {
			return e, fmt.Errorf("property %q: its type is %v, not a string", name, members[name+typeSuffix])
		}
		p, err := fromLiteral(value, EDM(annotation))
		if err != nil {
			return e, fmt.Errorf("property %q: %w", name, err)
		}
		e.properties[name] = p
	}
	return e, nil
}

// unmarshal is json.Unmarshal, but numbers in interfaces keep their digits.
func unmarshal(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// system returns where the member of a name belongs that is not a property.
func (e *storedEntity) system(name string) *string {
	switch name {
	case "odata.etag":
		return &e.etag
	case "PartitionKey":
		return &e.partition
	case "RowKey":
		return &e.row
	case "Timestamp":
		return &e.timestamp
	}
	return nil
}

// ownedByProtocol reports whether a member describes the entity instead of being a property.
func ownedByProtocol(name string) bool {
	return strings.HasPrefix(name, "odata.") || strings.HasSuffix(name, typeSuffix)
}

// fromLiteral returns the Property for a decoded JSON literal: by its annotation, or by its form.
func fromLiteral(value any, annotation EDM) (Property, error) {
	text, quoted, err := literalText(value)
	if err != nil {
		return Property{}, err
	}
	if annotation == "" {
		annotation = looksLike(text, quoted)
	}
	if !annotation.spelled(quoted) {
		if quoted {
			text = strconv.Quote(text)
		}
		return Property{}, fmt.Errorf("%s is not a value of type %s", text, annotation)
	}
	return typed(annotation, text)
}

// spelled reports whether values of the type may be JSON strings (quoted) or numbers and booleans. Int64 and Double may
// be both.
func (t EDM) spelled(quoted bool) bool {
	switch t {
	case EDMBoolean, EDMInt32:
		return !quoted
	case EDMInt64, EDMDouble:
		return true
	}
	return quoted
}

// literalText returns the text of a decoded JSON literal, and whether it was a string.
func literalText(value any) (text string, quoted bool, err error) {
	kind := "an object"
	switch v := value.(type) {
	case string:
		return v, true, nil
	case json.Number:
		return v.String(), false, nil
	case bool:
		return strconv.FormatBool(v), false, nil
	case []any:
		kind = "a list"
	}
	return "", false, fmt.Errorf("a property holds a single value, not %s; store the JSON as text, or its members as properties of their own", kind)
}

// looksLike returns the type that the service gives to a literal without an annotation, except that an integer beyond
// 32 bits is an Int64.
func looksLike(text string, quoted bool) EDM {
	switch {
	case quoted:
		return EDMString
	case text == "true", text == "false":
		return EDMBoolean
	case strings.ContainsAny(text, ".eE"):
		return EDMDouble
	}
	if _, err := strconv.ParseInt(text, 10, 32); err == nil {
		return EDMInt32
	}
	return EDMInt64
}
