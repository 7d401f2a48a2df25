package jsonform

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"
)

// style is how a text separates its values.
type style struct {
	line  string // the line break before the text's first line, which has no indentation; empty for a text on one line
	unit  string // the indentation of a level
	colon string // the white space after a colon
	comma string // the white space after a comma, between values on one line
}

func styleOf(root *hujson.Value) (s style) {
	var colon, comma *string
	for v := range root.All() {
		if o, ok := v.Value.(*hujson.Object); ok && colon == nil && len(o.Members) > 0 {
			colon = new(space(o.Members[0].Value.BeforeExtra))
		}
		for i, extra := range extras(v.Value) {
			text := space(*extra)
			switch {
			case strings.Contains(text, "\n") && s.line == "":
				s.line, s.unit = text[:strings.Index(text, "\n")+1], text[strings.Index(text, "\n")+1:]
				s.unit = strings.TrimPrefix(s.unit, strings.TrimLeft(space(*after(v.Value)), "\r\n"))
			case i > 0 && comma == nil && !strings.Contains(text, "\n"):
				comma = &text
			}
		}
	}
	switch {
	case colon == nil && comma == nil:
		return s
	case colon == nil:
		colon = comma
	case comma == nil:
		comma = colon
	}
	s.colon, s.comma = *colon, *comma
	return s
}

// extras returns what stands before each element of a list, or member of an object.
func extras(v hujson.ValueTrimmed) (before []*hujson.Extra) {
	switch v := v.(type) {
	case *hujson.Object:
		for i := range v.Members {
			before = append(before, &v.Members[i].Name.BeforeExtra)
		}
	case *hujson.Array:
		for i := range v.Elements {
			before = append(before, &v.Elements[i].BeforeExtra)
		}
	}
	return before
}

// after returns what stands before the end of a list or an object. It is nil for anything else.
func after(v hujson.ValueTrimmed) *hujson.Extra {
	switch v := v.(type) {
	case *hujson.Object:
		return &v.AfterExtra
	case *hujson.Array:
		return &v.AfterExtra
	}
	return nil
}

// last returns what stands behind the last value of a list or an object. If it is not nil, a comma follows. A list without values has none.
func last(v hujson.ValueTrimmed) *hujson.Extra {
	switch v := v.(type) {
	case *hujson.Object:
		if n := len(v.Members); n > 0 {
			return &v.Members[n-1].Value.AfterExtra
		}
	case *hujson.Array:
		if n := len(v.Elements); n > 0 {
			return &v.Elements[n-1].AfterExtra
		}
	}
	return nil
}

// space returns the white space of e: the last line break with the indentation behind it, if there is one.
func space(e hujson.Extra) string {
	i := bytes.LastIndexByte(e, '\n')
	switch {
	case i < 0 && !e.IsStandard():
		return " "
	case i < 0:
		return string(e)
	case i > 0 && e[i-1] == '\r':
		i--
	}
	return string(e[i : len(e)-len(bytes.TrimLeft(e[i:], " \t\r\n"))])
}

// comments returns e without the white space at its end. It is empty if there is no comment.
func comments(e hujson.Extra) string {
	if e.IsStandard() {
		return ""
	}
	return string(bytes.TrimRight(e, " \t\r\n"))
}

// layout is the white space of a list or an object, which stays when its values change.
type layout struct {
	first, next string // before the first value, and before each other one
	line        string // the line break and the indentation before its values; empty if they are on one line
	end         string // before its end
	commaLast   bool   // a comma follows the last value
	empty       bool
}

// layoutOf returns the layout of v, which begins at line. It takes the first value's white space away, which another may get.
func (s style) layoutOf(v hujson.ValueTrimmed, line string) (l layout) {
	before := extras(v)
	if after(v) == nil {
		return l
	}
	l.end = space(*after(v))
	if l.empty = len(before) == 0; l.empty {
		if l.first, l.next = l.end, s.comma; line != "" {
			l.line, l.end = line+s.unit, line
			l.first, l.next = l.line, l.line
		}
		return l
	}
	l.first, l.next, l.commaLast = space(*before[0]), s.comma, *last(v) != nil
	if text := space(*before[len(before)-1]); len(before) > 1 || strings.Contains(text, "\n") {
		l.next = text
	}
	if strings.Contains(l.next, "\n") {
		l.line = l.next
	}
	if before[0].IsStandard() {
		*before[0] = nil
	}
	return l
}

// restore lays out the values that v has now. Those without white space are new, or were first.
func (l layout) restore(v hujson.ValueTrimmed) {
	before, end := extras(v), after(v)
	for i, extra := range before {
		if *extra != nil && (i > 0 || !extra.IsStandard()) {
			continue
		}
		space := l.next
		if i == 0 {
			space = l.first
		}
		if i == len(before)-1 && (i > 0 || l.empty) { // a comment at the end belongs to the value before
			space, *end = comments(*end)+space, hujson.Extra(l.end)
		}
		*extra = hujson.Extra(space)
	}
	if len(before) == 0 {
		*end = hujson.Extra(comments(*end))
		return
	}
	if behind := last(v); l.commaLast && *behind == nil {
		*behind = hujson.Extra{}
	} else if !l.commaLast && *behind != nil {
		*end, *behind = append(*behind, *end...), nil
	}
}

// lay lays out v, which has no white space, as one that begins at line.
func (s style) lay(v *hujson.Value, line string) {
	in := ""
	if line != "" {
		in = line + s.unit
	}
	for i, extra := range extras(v.Value) {
		if *after(v.Value) = hujson.Extra(line); in != "" {
			*extra = hujson.Extra(in)
		} else if i > 0 {
			*extra = hujson.Extra(s.comma)
		}
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			c.Members[i].Value.BeforeExtra = hujson.Extra(s.colon)
			s.lay(&c.Members[i].Value, in)
		}
	case *hujson.Array:
		for i := range c.Elements {
			s.lay(&c.Elements[i], in)
		}
	}
}
