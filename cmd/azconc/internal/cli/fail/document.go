package fail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// PlainJSON describes an error in a JSON document without naming Go types.
func PlainJSON(err error) string {
	text := strings.TrimPrefix(err.Error(), "not an entity: ")
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where := "it is"
		if wrong.Field != "" {
			where = fmt.Sprintf("%q is", wrong.Field)
		}
		what, _, _ := strings.Cut(wrong.Value, " ")
		plain := fmt.Sprintf("%s %s, and not %s", where, article(what), article(jsonKind(wrong.Type.Kind().String())))
		return strings.Replace(text, wrong.Error(), plain, 1)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || strings.HasSuffix(text, "unexpected end of JSON input") {
		return "it is incomplete"
	}
	return strings.ReplaceAll(strings.TrimPrefix(text, "json: "), "unknown field", "unknown member")
}

// jsonKind returns the JSON name of a Go kind.
func jsonKind(kind string) string {
	switch {
	case kind == "struct", kind == "map":
		return "object"
	case kind == "slice", kind == "array":
		return "list"
	case kind == "bool":
		return "true or false"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "whole number"
	case strings.HasPrefix(kind, "float"):
		return "number"
	}
	return kind
}

func article(kind string) string {
	switch kind {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	case "true or false", "null":
		return kind
	}
	return "a " + kind
}

// ByteOrderMark returns an error if data begins with a byte order mark, as Windows programs write it. JSON has none (RFC 8259,
// section 8.1).
func ByteOrderMark(data []byte) error {
	for mark, in := range map[string]string{"\xef\xbb\xbf": "UTF-8", "\xff\xfe": "UTF-16", "\xfe\xff": "UTF-16"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return fmt.Errorf("it begins with a byte order mark, in %s: save it as UTF-8 without one", in)
		}
	}
	return nil
}

// StrictJSON parses a document and refuses unknown members.
func StrictJSON(data []byte, what string, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := cmp.Or(ByteOrderMark(data), d.Decode(into)); err != nil {
		return Usagef("the file is not %s: %s", what, show.OneLine(PlainJSON(err)))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Usagef("the file is not %s: it is more than one JSON value", what)
	}
	return nil
}
