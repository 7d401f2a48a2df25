package report

import (
	"fmt"
	"strings"
)

// word is a token of an expression that the library has accepted: a name, a sign, or a literal, which has no text.
type word struct {
	text string
	at   int
	name bool
}

// scan returns the words of an expression.
func scan(text string) (words []word) {
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\'' || c == '`' || c == '"':
			end := i + 1
			for end < len(text) && text[end] != c {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text))
			w := word{at: i}
			if c == '"' {
				w.text, w.name = text[i+1:end], true
			}
			words = append(words, w)
			i = end + 1
		case isNameByte(c):
			end := i
			for end < len(text) && (isNameByte(text[end]) || text[end] >= '0' && text[end] <= '9') {
				end++
			}
			words = append(words, word{text: text[i:end], at: i, name: true})
			i = end
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
		default:
			words = append(words, word{text: string(c), at: i})
			i++
		}
	}
	return words
}

func isNameByte(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// keys returns the names of the members of objects that the expression makes, such as a and b of {a: x, b: y}.
func keys(words []word) (names []string) {
	for i := 1; i+1 < len(words); i++ {
		before, after := words[i-1], words[i+1]
		if words[i].name && !before.name && (before.text == "{" || before.text == ",") && !after.name && after.text == ":" {
			names = append(names, words[i].text)
		}
	}
	return names
}

// functions has the least and the largest number of arguments of each function of JMESPath. -1 is no limit.
var functions = map[string][2]int{
	"abs": {1, 1}, "avg": {1, 1}, "ceil": {1, 1}, "contains": {2, 2}, "ends_with": {2, 2}, "floor": {1, 1}, "join": {2, 2},
	"keys": {1, 1}, "length": {1, 1}, "map": {2, 2}, "max": {1, 1}, "max_by": {2, 2}, "merge": {1, -1}, "min": {1, 1}, "min_by": {2, 2},
	"not_null": {1, -1}, "reverse": {1, 1}, "sort": {1, 1}, "sort_by": {2, 2}, "starts_with": {2, 2}, "sum": {1, 1},
	"to_array": {1, 1}, "to_number": {1, 1}, "to_string": {1, 1}, "type": {1, 1}, "values": {1, 1},
}

// badCall returns the first call of a function that does not exist, or that has another number of arguments.
func badCall(words []word) (at int, why string) {
	for i := 0; i+1 < len(words); i++ {
		if !words[i].name || words[i+1].name || words[i+1].text != "(" {
			continue
		}
		limits, known := functions[words[i].text]
		if !known {
			return words[i].at, "there is no function " + words[i].text
		}
		if n := arguments(words[i+1:]); n < limits[0] || limits[1] >= 0 && n > limits[1] {
			return words[i].at, fmt.Sprintf("%s takes %s, not %d", words[i].text, limit(limits), n)
		}
	}
	return 0, ""
}

// arguments counts the arguments between a bracket, the first word, and its counterpart.
func arguments(words []word) int {
	depth, n := 0, 1
	for i, w := range words {
		if w.name {
			continue
		}
		switch w.text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				if i == 1 {
					return 0
				}
				return n
			}
		case ",":
			if depth == 1 {
				n++
			}
		}
	}
	return n
}

func limit(limits [2]int) string {
	switch {
	case limits[1] < 0:
		return fmt.Sprintf("%d arguments or more", limits[0])
	case limits[1] == 1:
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", limits[0])
}
