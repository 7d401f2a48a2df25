// Package edm implements the types of the Entity Data Model that the Table service supports: values in the service's
// spelling, filters over them, and JSON objects with ordered members.
package edm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// Type is a type of the Entity Data Model that the Table service supports.
type Type string

const (
	String   Type = "Edm.String"
	Boolean  Type = "Edm.Boolean"
	Int32    Type = "Edm.Int32"
	Int64    Type = "Edm.Int64"
	Double   Type = "Edm.Double"
	DateTime Type = "Edm.DateTime"
	GUID     Type = "Edm.Guid"
	Binary   Type = "Edm.Binary"
)

// Value is a typed value. The text is in the service's spelling, so equal values have equal texts.
type Value struct {
	Type Type
	Text string
}

// Ticks is the format of Edm.DateTime, in units of 100 ns, without trailing zeros.
const Ticks = "2006-01-02T15:04:05.9999999Z"

var year1601 = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)

// Implied returns the type of a value without an annotation. An integer that does not fit 32 bits is a Double: so an
// Int64 that is sent as a bare number loses its last digits.
func Implied(raw json.RawMessage, quoted bool) Type {
	text := strings.TrimSpace(string(raw))
	switch {
	case quoted:
		return String
	case text == "true", text == "false":
		return Boolean
	case strings.ContainsAny(text, ".eE"):
		return Double
	}
	if _, err := strconv.ParseInt(text, 10, 32); err == nil {
		return Int32
	}
	if text[0] == '{' || text[0] == '[' {
		return "" // no type at all
	}
	return Double
}

// Canonical checks text against its type and returns it in the service's spelling.
func Canonical(kind Type, text string, quoted bool) (string, bool) {
	switch kind {
	case String:
		return text, quoted
	case Boolean:
		return text, text == "true" || text == "false"
	case Int32, Int64:
		n, err := strconv.ParseInt(text, 10, map[Type]int{Int32: 32, Int64: 64}[kind])
		return strconv.FormatInt(n, 10), err == nil
	case Double:
		switch text {
		case "NaN", "Infinity", "-Infinity":
			return text, quoted
		}
		f, err := strconv.ParseFloat(text, 64)
		return formatDouble(f), err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
	case DateTime:
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t, err = time.Parse("2006-01-02T15:04:05.9999999", text)
		}
		return t.UTC().Truncate(100).Format(Ticks), err == nil && quoted && !t.Before(year1601)
	case GUID:
		return strings.ToLower(text), quoted && guid.MatchString(text)
	case Binary:
		_, err := base64.StdEncoding.DecodeString(text)
		return text, err == nil && quoted
	}
	return "", false
}

// formatDouble formats a Double. A whole number gets a point, which distinguishes it from an Int32.
func formatDouble(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

var guid = regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Annotated reports whether a value's type is written next to it at the metadata level. Boolean, Int32, String and
// numbers with a point show their type.
func (p Value) Annotated(level Level) bool {
	if level == NoMetadata {
		return false
	}
	switch p.Type {
	case Int64, DateTime, GUID, Binary:
		return true
	case Double:
		return p.isSpecial()
	}
	return false
}

func (p Value) isSpecial() bool {
	return p.Type == Double && (p.Text == "NaN" || strings.HasSuffix(p.Text, "Infinity"))
}

// JSON returns the value as a JSON literal.
func (p Value) JSON() json.RawMessage {
	switch p.Type {
	case Boolean, Int32:
		return json.RawMessage(p.Text)
	case Double:
		if !p.isSpecial() {
			return json.RawMessage(p.Text)
		}
	}
	return Quote(p.Text)
}

// Quote returns a JSON string without the HTML escapes of json.Marshal.
func Quote(s string) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}

// Size returns how many bytes of an entity's 1 MiB a property takes, by the documented formula.
func (p Value) Size(name string) int {
	n := 8 + 2*len(utf16.Encode([]rune(name)))
	switch p.Type {
	case String:
		return n + 4 + 2*len(utf16.Encode([]rune(p.Text)))
	case Binary:
		return n + 4 + base64.StdEncoding.DecodedLen(len(p.Text))
	case Boolean:
		return n + 1
	case Int32:
		return n + 4
	case GUID:
		return n + 16
	}
	return n + 8
}

// Level is the amount of metadata in a response.
type Level string

const (
	NoMetadata      Level = "nometadata"
	MinimalMetadata Level = "minimalmetadata"
	FullMetadata    Level = "fullmetadata"
)

// Object is a JSON object with ordered members.
type Object struct{ members []member }

type member struct {
	name  string
	value json.RawMessage
}

func (o *Object) Add(name string, value json.RawMessage) {
	o.members = append(o.members, member{name, value})
}

// MarshalJSON implements json.Marshaler. It must be called directly: json.Marshal would escape characters that the
// service does not escape.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(Quote(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
