package jsonform

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"slices"
	"unicode/utf8"
)

// check refuses text that is not one JSON value, in memory that the values do not count for.
func check(text []byte) error {
	if json.Valid(text) {
		return nil
	}
	var raw json.RawMessage
	if err := decoder(text).Decode(&raw); err != nil {
		return err
	}
	return errors.New("more than one JSON value")
}

// The functions below read text that is valid.

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// skipString returns the position behind the string at a quote.
func skipString(text []byte, at int) int {
	for at++; ; {
		i := bytes.IndexByte(text[at:], '"')
		escapes := 0
		for escapes < i && text[at+i-1-escapes] == '\\' {
			escapes++
		}
		at += i + 1
		if escapes%2 == 0 {
			return at
		}
	}
}

// skipValue returns the position behind the value at its first byte.
func skipValue(text []byte, at int) int {
	for depth := 0; ; {
		switch c := text[at]; c {
		case '"':
			at = skipString(text, at)
		case '{', '[':
			depth, at = depth+1, at+1
		case '}', ']':
			depth, at = depth-1, at+1
		case ',', ':', ' ', '\n', '\t', '\r':
			at++
			continue
		default:
			for at < len(text) && !ends[text[at]] {
				at++
			}
		}
		if depth == 0 {
			return at
		}
	}
}

// ends has the bytes that end a number or a word.
var ends = [256]bool{',': true, '}': true, ']': true, ' ': true, '\n': true, '\t': true, '\r': true}

// place tells where a member is in the text: space from from, the name or else the value at head, space from end to after.
type place struct{ from, head, value, end, after int }

// cursor goes through the members of a container. With next true, leave must follow.
type cursor struct {
	text  []byte
	named bool
	at    int
	ended bool
	place
}

// enter returns a cursor for the container at its bracket.
func enter(text []byte, start int) *cursor {
	return &cursor{text: text, named: text[start] == '{', at: start + 1}
}

// next goes to the value of the next member. After the last one, at is behind the container.
func (c *cursor) next() bool {
	if c.ended {
		return false
	}
	begin := skipSpace(c.text, c.at)
	if b := c.text[begin]; b == '}' || b == ']' { // it is empty
		c.at, c.ended = begin+1, true
		return false
	}
	c.place = place{from: c.at, head: begin, value: begin}
	if c.named {
		colon := skipSpace(c.text, skipString(c.text, begin))
		c.value = skipSpace(c.text, colon+1)
	}
	return true
}

// leave goes behind a member whose value ends at end.
func (c *cursor) leave(end int) {
	c.end, c.after = end, skipSpace(c.text, end)
	c.at, c.ended = c.after+1, c.text[c.after] != ','
}

// name returns the name of the member at a place, which may share memory with the text.
func name(text []byte, at place) []byte { return unquote(text[at.head:skipString(text, at.head)]) }

// unquote returns what encoding/json makes of a string.
func unquote(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is valid
	return []byte(s)
}

// shadowed returns a function that tells whether a later member of the object at start has the name of the one at a place. Its memory is
// 8 bytes a member while it looks, and then what names that occur more than once take.
func shadowed(text []byte, start int) func(place) bool {
	seed := maphash.MakeSeed()
	count := 0
	for c := enter(text, start); c.next(); c.leave(skipValue(text, c.value)) {
		count++
	}
	hashes := make([]uint64, 0, count) // a slice that grows would take twice as much
	for c := enter(text, start); c.next(); c.leave(skipValue(text, c.value)) {
		hashes = append(hashes, maphash.Bytes(seed, name(text, c.place)))
	}
	slices.Sort(hashes)
	twice := map[uint64]bool{}
	for i := 1; i < len(hashes); i++ {
		if hashes[i] == hashes[i-1] {
			twice[hashes[i]] = true
		}
	}
	if len(twice) == 0 {
		return func(place) bool { return false }
	}
	latest := map[string]int{}
	for c := enter(text, start); c.next(); c.leave(skipValue(text, c.value)) {
		if n := name(text, c.place); twice[maphash.Bytes(seed, n)] {
			latest[string(n)] = c.head
		}
	}
	return func(at place) bool {
		head, found := latest[string(name(text, at))]
		return found && head != at.head
	}
}
