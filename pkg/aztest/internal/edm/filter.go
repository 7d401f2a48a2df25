package edm

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Row returns the value of a property by its name. ok is false if there is none.
type Row func(name string) (p Value, ok bool)

// predicate is a parsed $filter.
type predicate func(Row) bool

// ParseFilter parses the part of OData's filter language that the Table service supports (REST: "Querying Tables and
// Entities"): comparisons of a property with a constant, and, or, not, parentheses, and Boolean properties by
// themselves. The constants are 'text', 5, 5L, 2.5, true, datetime'…', guid'…', X'…' and binary'…'.
//
// A property and a constant of different types never match: 5 does not find the Int64 5L. A missing property does not
// match either.
func ParseFilter(filter string) (predicate, error) {
	if strings.TrimSpace(filter) == "" {
		return func(Row) bool { return true }, nil
	}
	tokens, err := lexFilter(filter)
	if err != nil {
		return nil, err
	}
	p := filterParser{tokens: tokens}
	f, err := storage.Grammar[Row]{Take: p.accept, Term: p.comparison}.Parse()
	if err == nil && p.at < len(p.tokens) {
		err = fmt.Errorf("%q is not expected", p.peek().text)
	}
	return f, err
}

type token struct {
	text     string
	constant *Value // nil for names, operators and parentheses
}

func lexFilter(s string) ([]token, error) {
	var tokens []token
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		switch {
		case s == "":
			return tokens, nil
		case s[0] == '(' || s[0] == ')':
			tokens, s = append(tokens, token{text: s[:1]}), s[1:]
			continue
		}
		word := s[:len(s)-len(strings.TrimLeftFunc(s, func(r rune) bool {
			return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.+-", r)
		}))]
		rest := s[len(word):]
		if strings.HasPrefix(rest, "'") {
			text, after, err := lexQuoted(rest)
			if err != nil {
				return nil, err
			}
			constant, err := typedConstant(word, text)
			if err != nil {
				return nil, err
			}
			tokens, s = append(tokens, token{text: s[:len(s)-len(after)], constant: &constant}), after
			continue
		}
		if word == "" {
			return nil, fmt.Errorf("%q is not expected", s[:1])
		}
		t := token{text: word}
		if constant, ok := bareConstant(word); ok {
			t.constant = &constant
		}
		tokens, s = append(tokens, t), rest
	}
}

// lexQuoted reads a constant in single quotes, in which a doubled quote stands for one.
func lexQuoted(s string) (text, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '\'' {
			b.WriteByte('\'')
			i++
			continue
		}
		return b.String(), s[i+1:], nil
	}
	return "", "", errors.New("a quote is not closed")
}

func typedConstant(prefix, text string) (Value, error) {
	kind := String
	switch prefix {
	case "":
	case "datetime":
		kind = DateTime
	case "guid":
		kind = GUID
	case "X", "binary":
		data, err := hex.DecodeString(text)
		return Value{Binary, base64.StdEncoding.EncodeToString(data)}, err
	default:
		return Value{}, fmt.Errorf("%q is not a prefix of a constant", prefix)
	}
	value, ok := Canonical(kind, text, true)
	if !ok {
		return Value{}, fmt.Errorf("%q is not a constant of type %s", text, kind)
	}
	return Value{kind, value}, nil
}

func bareConstant(word string) (Value, bool) {
	if word == "true" || word == "false" {
		return Value{Boolean, word}, true
	}
	if !strings.ContainsAny(word[:1], "0123456789-+") {
		return Value{}, false
	}
	kind := Int32
	if digits, isLong := strings.CutSuffix(word, "L"); isLong {
		kind, word = Int64, digits
	} else if strings.ContainsAny(word, ".eE") {
		kind = Double
	} else if _, err := strconv.ParseInt(word, 10, 32); err != nil {
		kind = Int64
	}
	value, ok := Canonical(kind, word, false)
	return Value{kind, value}, ok
}

type filterParser struct {
	tokens []token
	at     int
}

func (p *filterParser) peek() token {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return token{text: "the end"}
}

func (p *filterParser) accept(word string) bool {
	if t := p.peek(); p.at < len(p.tokens) && t.constant == nil && t.text == word {
		p.at++
		return true
	}
	return false
}

// operand returns the value of a property or a constant.
func (p *filterParser) operand() (func(Row) (Value, bool), error) {
	t := p.peek()
	if p.at >= len(p.tokens) || t.text == "(" || t.text == ")" {
		return nil, fmt.Errorf("expected a property or a constant, not %q", t.text)
	}
	p.at++
	if t.constant != nil {
		return func(Row) (Value, bool) { return *t.constant, true }, nil
	}
	return func(r Row) (Value, bool) { return r(t.text) }, nil
}

var comparisons = map[string]func(order int) bool{
	"eq": func(o int) bool { return o == 0 }, "ne": func(o int) bool { return o != 0 },
	"gt": func(o int) bool { return o > 0 }, "ge": func(o int) bool { return o >= 0 },
	"lt": func(o int) bool { return o < 0 }, "le": func(o int) bool { return o <= 0 },
}

func (p *filterParser) comparison() (func(Row) bool, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	holds, ok := comparisons[p.peek().text]
	if !ok {
		return func(r Row) bool { // a Boolean property by itself
			v, ok := left(r)
			return ok && v == Value{Boolean, "true"}
		}, nil
	}
	p.at++
	right, err := p.operand()
	return func(r Row) bool {
		x, okX := left(r)
		y, okY := right(r)
		return okX && okY && x.Type == y.Type && holds(x.compare(y))
	}, err
}

// compare orders values of one type.
func (p Value) compare(q Value) int {
	switch p.Type {
	case Int32, Int64:
		x, _ := strconv.ParseInt(p.Text, 10, 64)
		y, _ := strconv.ParseInt(q.Text, 10, 64)
		return cmp.Compare(x, y)
	case Double:
		x, _ := strconv.ParseFloat(p.Text, 64)
		y, _ := strconv.ParseFloat(q.Text, 64)
		return cmp.Compare(x, y)
	case DateTime:
		x, _ := time.Parse(Ticks, p.Text)
		y, _ := time.Parse(Ticks, q.Text)
		return x.Compare(y)
	}
	return strings.Compare(p.Text, q.Text)
}
