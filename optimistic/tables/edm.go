package tables

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"
)

// EDM is a type of the Entity Data Model that the Table service supports.
type EDM string

// The types of the Table service (REST: "Understanding the Table service data model").
const (
	EDMString   EDM = "Edm.String"   // UTF-8 in requests, UTF-16 in the service
	EDMBoolean  EDM = "Edm.Boolean"  // true or false
	EDMInt32    EDM = "Edm.Int32"    // a signed integer of 32 bits
	EDMInt64    EDM = "Edm.Int64"    // a signed integer of 64 bits
	EDMDouble   EDM = "Edm.Double"   // a float of 64 bits
	EDMDateTime EDM = "Edm.DateTime" // UTC, in steps of 100 ns, from 1601 on
	EDMGUID     EDM = "Edm.Guid"     // 36 characters, with hyphens
	EDMBinary   EDM = "Edm.Binary"   // bytes, in base64
)

// Property is a value of an entity with its type. The value is text for every type, because only text represents all of
// them without loss: an Int64 in decimal, a Double with its point ("3.0"), a DateTime with all seven decimals, a Binary
// in base64. Two properties that are not == may still be equal, in different spelling.
type Property struct {
	Type  EDM
	Value string
}

// dateTime is the service's format of an Edm.DateTime.
const dateTime = "2006-01-02T15:04:05.9999999Z"

var firstDateTime = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)

// PropertyOf returns the Property for a Go value: bool, string, []byte, time.Time, floats, integers (those of at most
// 32 bits are Int32, as are int and uint if the value fits; others are Int64), aztables' EDM types, and types that
// encode to one of those as JSON. Anything else, including nil, is an error: a property without a value does not exist.
func PropertyOf(value any) (Property, error) {
	p, err := propertyFrom(value, Property{})
	if err == nil && p == (Property{}) {
		err = errors.New("nil is not a value")
	}
	return p, err
}

// Any returns the value as a Go value: string, bool, int32, int64, float64, time.Time or []byte; a Guid is a string.
// The error means that Value is not of type Type.
func (p Property) Any() (any, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	switch p.Type {
	case EDMBoolean:
		return p.Value == "true", nil
	case EDMInt32:
		n, err := strconv.ParseInt(p.Value, 10, 32)
		return int32(n), err
	case EDMInt64:
		return strconv.ParseInt(p.Value, 10, 64)
	case EDMDouble:
		return strconv.ParseFloat(p.Value, 64) // accepts Infinity and NaN
	case EDMDateTime:
		return parseDateTime(p.Value)
	case EDMBinary:
		return base64.StdEncoding.DecodeString(p.Value)
	}
	return p.Value, nil
}

func (p Property) check() error {
	_, err := typed(p.Type, p.Value)
	return err
}

// typed checks that text is a value of type t, and returns it in the service's spelling.
func typed(t EDM, text string) (Property, error) {
	p, ok := Property{t, text}, false
	switch t {
	case EDMString:
		ok = utf8.ValidString(text) // encoding/json would replace invalid bytes
	case EDMBoolean:
		ok = text == "true" || text == "false"
	case EDMInt32, EDMInt64:
		bits := 64
		if t == EDMInt32 {
			bits = 32
		}
		n, err := strconv.ParseInt(text, 10, bits)
		p.Value, ok = strconv.FormatInt(n, 10), err == nil
	case EDMDouble:
		f, err := strconv.ParseFloat(text, 64)
		ok = err == nil
		if !strings.ContainsAny(text, ".eE") || !json.Valid([]byte(text)) {
			p.Value = formatDouble(f) // a whole number gets its point
		}
	case EDMDateTime:
		at, err := parseDateTime(text)
		if err == nil && at.Before(firstDateTime) {
			return p, fmt.Errorf("%s is before 1601, where Edm.DateTime begins; omit a time that is not set (omitzero, or a pointer)", text)
		}
		ok = err == nil
		if _, literal := strings.CutSuffix(text, "Z"); ok && !literal || ok && len(text) > len(dateTime) {
			p.Value = at.Format(dateTime)
		}
	case EDMGUID:
		ok = len(text) == 36 && uuid.Validate(text) == nil // which takes other forms too
	case EDMBinary:
		_, err := base64.StdEncoding.DecodeString(text)
		ok = err == nil
	default:
		return p, fmt.Errorf("%q is not a type of the Table service", t)
	}
	if !ok {
		return p, fmt.Errorf("%q is not a value of type %s", text, t)
	}
	return p, nil
}

// parseDateTime parses a time as the service writes it, which sometimes lacks the time zone.
func parseDateTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		if local, again := time.Parse("2006-01-02T15:04:05.9999999", text); again == nil {
			return local, nil
		}
	}
	return at.UTC().Truncate(100), err
}

// formatDouble formats a Double. A whole number gets a point, to distinguish it from an integer.
func formatDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// special reports whether the property is a Double that JSON cannot represent as a number.
func (p Property) special() bool {
	return p.Type == EDMDouble && (p.Value == "NaN" || strings.HasSuffix(p.Value, "Infinity"))
}

// whole reports whether the property is a Double that loses its point or exponent if it is read and written as a
// number.
func (p Property) whole() bool {
	f, err := strconv.ParseFloat(p.Value, 64)
	return err == nil && f == math.Trunc(f)
}

// size returns how many bytes of an entity's 1 MiB the property takes, by the formula in "Understanding the Table
// service data model".
func (p Property) size(name string) int {
	n := 8 + utf16Size(name)
	switch p.Type {
	case EDMString:
		return n + 4 + utf16Size(p.Value)
	case EDMBinary:
		return n + 4 + base64.StdEncoding.DecodedLen(len(p.Value)) - strings.Count(p.Value, "=")
	case EDMBoolean:
		return n + 1
	case EDMInt32:
		return n + 4
	case EDMGUID:
		return n + 16
	}
	return n + 8
}

// utf16Size returns the size of a text in bytes, as the service stores it.
func utf16Size(s string) (n int) {
	for _, r := range s {
		n += 2 * utf16.RuneLen(r)
	}
	return n
}
