package queue

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// object is a mapping of YAML whose keys stay in order. Values are objects, lists, strings, numbers and truth values.
type object []field

type field struct {
	key   string
	value any
}

type list []any

// bare is what needs no quotes, unless it is reserved: text that YAML takes for nothing but text.
var (
	bare     = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9/._-]*$`)
	reserved = regexp.MustCompile(`(?i)^(y|n|yes|no|true|false|on|off|null)$`)
)

// document returns a value as a document of YAML.
func document(v object) string {
	var b strings.Builder
	writeYAML(&b, "", v)
	return b.String()
}

func writeYAML(b *strings.Builder, indent string, v any) {
	switch v := v.(type) {
	case object:
		for _, f := range v {
			b.WriteString(indent + scalar(f.key) + ":")
			switch inner := f.value.(type) {
			case object:
				if len(inner) == 0 {
					b.WriteString(" {}\n")
					continue
				}
				b.WriteString("\n")
			case list:
				b.WriteString("\n")
			default:
				b.WriteString(" " + scalar(inner) + "\n")
				continue
			}
			writeYAML(b, indent+"  ", f.value)
		}
	case list:
		for _, item := range v {
			if _, ok := item.(object); !ok {
				b.WriteString(indent + "- " + scalar(item) + "\n")
				continue
			}
			var inner strings.Builder
			writeYAML(&inner, indent+"  ", item)
			b.WriteString(indent + "- " + strings.TrimPrefix(inner.String(), indent+"  "))
		}
	}
}

// scalar returns a scalar. The escapes of Go in double quotes are those of YAML, as far as the characters of flags need any.
func scalar(v any) string {
	s, ok := v.(string)
	switch {
	case !ok:
		return fmt.Sprint(v)
	case bare.MatchString(s) && !reserved.MatchString(s):
		return s
	}
	return strconv.Quote(s)
}
