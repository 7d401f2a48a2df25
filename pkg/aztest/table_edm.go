package aztest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// edm is a type of the Entity Data Model, as far as the Table service has it.
type edm string

const (
	edmString   edm = "Edm.String"
	edmBoolean  edm = "Edm.Boolean"
	edmInt32    edm = "Edm.Int32"
	edmInt64    edm = "Edm.Int64"
	edmDouble   edm = "Edm.Double"
	edmDateTime edm = "Edm.DateTime"
	edmGUID     edm = "Edm.Guid"
	edmBinary   edm = "Edm.Binary"
)

// property is a typed value. The text is the service's own spelling, so that equal values have equal texts.
type property struct {
	edm  edm
	text string
}

// Limits of the service (REST: "Understanding the Table service data model").
const (
	maxEntity       = 1 << 20
	maxProperties   = 252 // beside PartitionKey, RowKey and Timestamp
	maxPropertyName = 255
	maxValue        = 64 << 10
	maxKey          = 1 << 10
	maxBatch        = 4 << 20
	maxBatchOps     = 100
)

func tooLong(s string, limit int) bool { return 2*len(utf16.Encode([]rune(s))) > limit }

// ticks is the resolution of Edm.DateTime: 100 ns, trailing zeros left out.
const ticks = "2006-01-02T15:04:05.9999999Z"

var year1601 = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)

func badValue(name string) *answer {
	return failTable(http.StatusBadRequest, "InvalidInput", "An error occurred while processing this request. The value of property '"+name+"' is not of its type.")
}

// parseProperty reads one member of a JSON entity, with the annotation it has, if any. A null is no property.
func parseProperty(name string, raw json.RawMessage, annotation string) (p property, isNull bool, bad *answer) {
	text := strings.TrimSpace(string(raw))
	if text == "null" {
		return p, true, nil
	}
	quoted := text[0] == '"'
	if quoted {
		if err := json.Unmarshal(raw, &text); err != nil {
			return p, false, badValue(name)
		}
	}
	kind := edm(annotation)
	if kind == "" {
		kind = implied(raw, quoted)
	}
	value, ok := canonicalValue(kind, text, quoted)
	if !ok {
		return p, false, badValue(name)
	}
	if (kind == edmString || kind == edmBinary) && tooLarge(kind, value) {
		return p, false, failTable(http.StatusBadRequest, "PropertyValueTooLarge", "The property value exceeds the maximum allowed size (64KB).")
	}
	return property{kind, value}, false, nil
}

func tooLarge(kind edm, value string) bool {
	if kind == edmBinary {
		return base64.StdEncoding.DecodedLen(len(value)) > maxValue+2
	}
	return tooLong(value, maxValue)
}

// implied is the type that a value without an annotation has. An integer that does not fit 32 bits is a Double: this is
// how a Int64 sent as a bare number loses its last digits.
func implied(raw json.RawMessage, quoted bool) edm {
	text := strings.TrimSpace(string(raw))
	switch {
	case quoted:
		return edmString
	case text == "true", text == "false":
		return edmBoolean
	case strings.ContainsAny(text, ".eE"):
		return edmDouble
	}
	if _, err := strconv.ParseInt(text, 10, 32); err == nil {
		return edmInt32
	}
	if text[0] == '{' || text[0] == '[' {
		return "" // no type at all
	}
	return edmDouble
}

// canonicalValue checks text against its type and spells it as the service does.
func canonicalValue(kind edm, text string, quoted bool) (string, bool) {
	switch kind {
	case edmString:
		return text, quoted
	case edmBoolean:
		return text, text == "true" || text == "false"
	case edmInt32, edmInt64:
		n, err := strconv.ParseInt(text, 10, map[edm]int{edmInt32: 32, edmInt64: 64}[kind])
		return strconv.FormatInt(n, 10), err == nil
	case edmDouble:
		switch text {
		case "NaN", "Infinity", "-Infinity":
			return text, quoted
		}
		f, err := strconv.ParseFloat(text, 64)
		return formatDouble(f), err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
	case edmDateTime:
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t, err = time.Parse("2006-01-02T15:04:05.9999999", text)
		}
		return t.UTC().Truncate(100).Format(ticks), err == nil && quoted && !t.Before(year1601)
	case edmGUID:
		return strings.ToLower(text), quoted && isGUID(text)
	case edmBinary:
		_, err := base64.StdEncoding.DecodeString(text)
		return text, err == nil && quoted
	}
	return "", false
}

// formatDouble marks a whole number as a Double, which is all that tells it from an Int32 on the wire.
func formatDouble(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// hexToBase64 reads the constants of a filter, which are in hexadecimal.
func hexToBase64(text string) (string, error) {
	data, err := hex.DecodeString(text)
	return base64.StdEncoding.EncodeToString(data), err
}

func isGUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		digit := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if hyphen != (c == '-') || !hyphen && !digit {
			return false
		}
	}
	return true
}

// annotated tells whether a value's type is written beside it at the metadata level. Boolean, Int32, String and numbers
// with a point speak for themselves.
func (p property) annotated(level metadataLevel) bool {
	if level == noMetadata {
		return false
	}
	switch p.edm {
	case edmInt64, edmDateTime, edmGUID, edmBinary:
		return true
	case edmDouble:
		return p.isSpecial()
	}
	return false
}

func (p property) isSpecial() bool {
	return p.edm == edmDouble && (p.text == "NaN" || strings.HasSuffix(p.text, "Infinity"))
}

// json is the value as a JSON literal.
func (p property) json() json.RawMessage {
	switch p.edm {
	case edmBoolean, edmInt32:
		return json.RawMessage(p.text)
	case edmDouble:
		if !p.isSpecial() {
			return json.RawMessage(p.text)
		}
	}
	return quote(p.text)
}

// quote is a JSON string without the escapes for HTML that json.Marshal makes.
func quote(s string) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}

// size is what a property takes of an entity's 1 MiB, by the service's published formula.
func (p property) size(name string) int {
	n := 8 + 2*len(utf16.Encode([]rune(name)))
	switch p.edm {
	case edmString:
		return n + 4 + 2*len(utf16.Encode([]rune(p.text)))
	case edmBinary:
		return n + 4 + base64.StdEncoding.DecodedLen(len(p.text))
	case edmBoolean:
		return n + 1
	case edmInt32:
		return n + 4
	case edmGUID:
		return n + 16
	}
	return n + 8
}
