package blobservice

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// tagPredicate is a parsed x-ms-if-tags.
type tagPredicate func(tags map[string]string) bool

// parseTags parses a predicate over index tags (REST: "Specifying conditional headers", x-ms-if-tags): comparisons of a
// tag, in double quotes or bare, with a value in single quotes, joined by AND and OR, with AND binding tighter, and parentheses.
func parseTags(expression string) (tagPredicate, error) {
	p := &tagParser{rest: expression}
	predicate, err := storage.Grammar[map[string]string]{Take: p.word, Term: p.comparison}.Parse()
	if p.skipSpace(); err == nil && p.rest != "" {
		err = fmt.Errorf("unexpected %q", p.rest)
	}
	return predicate, err
}

type tagParser struct{ rest string }

func (p *tagParser) comparison() (func(map[string]string) bool, error) {
	name := p.bare()
	if name == "" {
		var err error
		if name, err = p.quoted('"'); err != nil {
			return nil, err
		}
	}
	for _, op := range []struct {
		text  string
		holds func(order int) bool
	}{
		{"<>", func(o int) bool { return o != 0 }}, {"<=", func(o int) bool { return o <= 0 }}, {">=", func(o int) bool { return o >= 0 }},
		{"=", func(o int) bool { return o == 0 }}, {"<", func(o int) bool { return o < 0 }}, {">", func(o int) bool { return o > 0 }},
	} {
		if !p.take(op.text) {
			continue
		}
		value, err := p.quoted('\'')
		return func(tags map[string]string) bool {
			got, there := tags[name]
			return there && op.holds(strings.Compare(got, value))
		}, err
	}
	return nil, fmt.Errorf("no comparison at %q", p.rest)
}

func (p *tagParser) skipSpace() { p.rest = strings.TrimLeft(p.rest, " \t") }

func (p *tagParser) take(token string) bool {
	p.skipSpace()
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

// word takes a word in any case, or a parenthesis. There is no not.
func (p *tagParser) word(w string) bool {
	p.skipSpace()
	if w == "not" || len(p.rest) < len(w) || !strings.EqualFold(p.rest[:len(w)], w) {
		return false
	}
	p.rest = p.rest[len(w):]
	return true
}

// bare takes a name without quotes, which the service accepts.
func (p *tagParser) bare() string {
	p.skipSpace()
	end := 0
	for end < len(p.rest) && storage.Identifier("a"+p.rest[end:end+1]) {
		end++
	}
	name := p.rest[:end]
	p.rest = p.rest[end:]
	return name
}

func (p *tagParser) quoted(quote byte) (string, error) {
	if !p.take(string(quote)) {
		return "", fmt.Errorf("missing %c at %q", quote, p.rest)
	}
	value, rest, ok := strings.Cut(p.rest, string(quote))
	if !ok {
		return "", fmt.Errorf("missing closing %c", quote)
	}
	p.rest = rest
	return value, nil
}

type tagSet struct {
	XMLName xml.Name `xml:"Tags"`
	Tags    []tag    `xml:"TagSet>Tag"`
}

type tag struct {
	Key   string
	Value string
}

// headerTags parses x-ms-tags, which is encoded like a query.
func headerTags(r *storage.Request) (map[string]string, *storage.Answer) {
	header := r.Header.Get("X-Ms-Tags")
	if header == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(header)
	if err != nil {
		return nil, storage.InvalidHeader("x-ms-tags", header)
	}
	tags := map[string]string{}
	for name := range values {
		tags[name] = values.Get(name)
	}
	return tags, validTags(tags)
}

var tagText = regexp.MustCompile(`^[a-zA-Z0-9 +\-./:=_]*$`)

func validTags(tags map[string]string) *storage.Answer {
	tooLarge := func() *storage.Answer {
		return storage.Fail(http.StatusBadRequest, "TagsTooLarge", "The tags specified exceed the maximum permissible limit.")
	}
	if len(tags) > 10 {
		return tooLarge()
	}
	for name, value := range tags {
		switch {
		case name == "":
			return storage.Fail(http.StatusBadRequest, "EmptyTagName", "The name of one of the tag key-value pairs is empty.")
		case len(name) > 128 || len(value) > 256:
			return tooLarge()
		case !tagText.MatchString(name + value):
			return storage.Fail(http.StatusBadRequest, "InvalidTag", "The tags specified are invalid. It contains characters that are not permitted.")
		}
	}
	return nil
}

func tagSetOf(tags map[string]string) *tagSet {
	set := &tagSet{}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		set.Tags = append(set.Tags, tag{name, tags[name]})
	}
	return set
}

func (s *Service) getTags(b *blobState) *storage.Answer {
	return storage.XML(tagSetOf(b.tags))
}

func (s *Service) setTags(r *storage.Request, b *blobState) *storage.Answer {
	var set tagSet
	if err := xml.Unmarshal(r.Body, &set); err != nil {
		return storage.InvalidXML()
	}
	tags := map[string]string{}
	for _, t := range set.Tags {
		if _, twice := tags[t.Key]; twice {
			return storage.Fail(http.StatusBadRequest, "DuplicateTagNames", "The tags specified contain duplicate names.")
		}
		tags[t.Key] = t.Value
	}
	if a := validTags(tags); a != nil {
		return a
	}
	b.tags = tags // not part of the version: the ETag stays
	return storage.OK(http.StatusNoContent)
}
