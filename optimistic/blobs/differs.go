package blobs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// differs reports whether it is plain from the texts that before, the JSON of a T, holds another value than after, which is
// an encoding of a T. It compares them at the speed of bytes.Equal. false proves nothing: decoding decides then.
//
// It follows both texts as long as they have the same members in the same places, and differ only in numbers, strings and
// booleans, and in how many elements a list has. after has no member twice, because encoding/json wrote it, so before has
// none either, and nothing that comes later in it can replace what is found to differ.
func differs[T any](before, after []byte) bool {
	t := jsonTraitsOf(reflect.TypeFor[T]())
	if t.opaque {
		return false
	}
	before, after = bytes.TrimRight(before, " \t\r\n"), bytes.TrimRight(after, " \t\r\n")
	found := false
	for len(before) > 0 && len(after) > 0 {
		n := commonPrefix(before, after)
		if n == len(before) && n == len(after) {
			return found
		}
		if n == len(before) || n == len(after) {
			return false
		}
		x, y, definite, ok := t.different(before, after, n)
		if !ok {
			return false
		}
		found = found || definite
		before, after = before[x:], after[y:]
	}
	return found && len(before) == 0 && len(after) == 0
}

// different compares the tokens at offset n, where the texts begin to differ. Both begin outside a string. x and y are where
// they go on.
func (t jsonTraits) different(before, after []byte, n int) (x, y int, definite, ok bool) {
	within, ok := inString(after[:n])
	if !ok {
		return 0, 0, false, false
	}
	if within {
		x, y = stringEnd(before, n), stringEnd(after, n)
		if x < 0 || y < 0 || y < len(after) && after[y] == ':' {
			return 0, 0, false, false // a name
		}
		start := bytes.LastIndexByte(after[:n], '"')
		literal := bytes.IndexByte(before[start:x], '\\') < 0 && bytes.IndexByte(after[start:y], '\\') < 0 && (start == 0 || after[start-1] != '\\')
		return x, y, t.texts && literal && utf8.Valid(before[start:x]), true
	}
	start := n
	for start > 0 && inScalar(after[start-1]) {
		start--
	}
	for x = n; x < len(before) && inScalar(before[x]); x++ {
	}
	for y = n; y < len(after) && inScalar(after[y]); y++ {
	}
	old, now := string(before[start:x]), string(after[start:y])
	switch {
	case isNumber(old) && isNumber(now) && old != now:
		return x, y, t.otherNumber(old, now), true
	case old == "true" && now == "false", old == "false" && now == "true":
		return x, y, true, true
	case n == 0 || t.arrays:
		return 0, 0, false, false
	case before[n] == ']' && (after[n] == ',' || after[n-1] == '['):
		y = listEnd(after, n)
		return n, y, true, y >= 0
	case after[n] == ']' && (before[n] == ',' || after[n-1] == '['):
		x = listEnd(before, n)
		return x, n, true, x >= 0
	}
	return 0, 0, false, false
}

// otherNumber reports whether two numbers differ in every type that a field of a T may have.
func (t jsonTraits) otherNumber(x, y string) bool {
	if !t.float32s && max(len(x), len(y)) <= 15 && !strings.ContainsAny(x+y, ".eE") {
		return x != "-0" && y != "-0"
	}
	a, errX := strconv.ParseFloat(x, 64)
	b, errY := strconv.ParseFloat(y, 64)
	return errX == nil && errY == nil && math.Abs(a-b) > 1e-6*max(math.Abs(a), math.Abs(b))
}

func commonPrefix(x, y []byte) int {
	n, size := 0, min(len(x), len(y))
	for ; n+8 <= size; n += 8 {
		if d := binary.LittleEndian.Uint64(x[n:]) ^ binary.LittleEndian.Uint64(y[n:]); d != 0 {
			return n + bits.TrailingZeros64(d)/8
		}
	}
	for n < size && x[n] == y[n] {
		n++
	}
	return n
}

// inString reports whether text, which begins outside a string, ends within one. It is not ok within an escape.
func inString(text []byte) (within, ok bool) {
	quotes := bytes.Count(text, []byte{'"'})
	for rest := text; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return quotes%2 == 1, true
		}
		if i+1 >= len(rest) {
			return false, false
		}
		if rest[i+1] == '"' {
			quotes--
		}
		rest = rest[i+2:]
	}
}

// stringEnd returns the offset after the string that text has at from, or -1.
func stringEnd(text []byte, from int) int {
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// listEnd returns the offset of the bracket that closes the list in which from is, outside a string, or -1.
func listEnd(text []byte, from int) int {
	depth := 0
	for i := from; i >= 0 && i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = stringEnd(text, i+1) - 1; i < 0 {
				return -1
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

func inScalar(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

func isNumber(s string) bool { return s != "" && (s[0] == '-' || '0' <= s[0] && s[0] <= '9') }

// jsonTraits say what the texts of the values of a type show about them.
type jsonTraits struct {
	untyped  bool // there may be an interface in it, to which encoding/json decodes as it likes
	opaque   bool // there are types that encode themselves
	texts    bool // different strings are different values
	arrays   bool // a list may be an array, which is filled up when it is decoded
	float32s bool
}

var jsonTraitsKnown sync.Map // reflect.Type to jsonTraits

func jsonTraitsOf(t reflect.Type) jsonTraits {
	if known, ok := jsonTraitsKnown.Load(t); ok {
		return known.(jsonTraits)
	}
	traits := jsonTraits{texts: true}
	traits.collect(t, map[reflect.Type]bool{})
	jsonTraitsKnown.Store(t, traits)
	return traits
}

func (t *jsonTraits) collect(of reflect.Type, seen map[reflect.Type]bool) {
	if seen[of] {
		return
	}
	seen[of] = true
	switch {
	case of == reflect.TypeFor[json.RawMessage]():
		return // kept as it is
	case of == reflect.TypeFor[time.Time]():
		t.texts = false // a time has several spellings
		return
	case encodesItself(of):
		t.opaque = true // what it has in it is of interest for untyped all the same
	}
	switch of.Kind() {
	case reflect.Interface:
		t.untyped = true
	case reflect.Float32:
		t.float32s = true
	case reflect.Array:
		t.arrays = true
		t.collect(of.Elem(), seen)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			t.texts = false // base64 has several spellings, too
		}
		t.collect(of.Elem(), seen)
	case reflect.Pointer:
		t.collect(of.Elem(), seen)
	case reflect.Map:
		t.collect(of.Key(), seen)
		t.collect(of.Elem(), seen)
	case reflect.Struct:
		for i := range of.NumField() {
			f := of.Field(i)
			if _, options, _ := strings.Cut(f.Tag.Get("json"), ","); strings.Contains(","+options+",", ",string,") {
				t.texts = false
			}
			t.collect(f.Type, seen)
		}
	}
}

var ownEncodings = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[interface{ MarshalText() ([]byte, error) }](), reflect.TypeFor[interface{ UnmarshalText([]byte) error }](),
}

func encodesItself(t reflect.Type) bool {
	for _, own := range ownEncodings {
		if t.Implements(own) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(own) {
			return true
		}
	}
	return false
}
