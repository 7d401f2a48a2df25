package blobservice

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// tagQuery is a parsed expression of Find Blobs by Tags: comparisons that all have to hold.
type tagQuery struct {
	container string // "" means all
	terms     []tagTerm
}

type tagTerm struct{ name, op, value string }

// parseTagQuery parses an expression (REST: "Find Blobs by Tags"): comparisons of a tag, or of @container, with a value in
// single quotes, joined by AND. Unlike a condition on tags it has no OR, no <> and no parentheses. A tag is compared once,
// or twice as the ends of a range.
func parseTagQuery(expression string) (tagQuery, error) {
	p, q := &tagParser{rest: expression}, tagQuery{}
	for {
		term, err := p.term()
		switch {
		case err != nil:
			return q, err
		case term.name != "@container":
			q.terms = append(q.terms, term)
		case term.op != "=" || q.container != "":
			return q, errors.New("@container is compared with = and once")
		default:
			q.container = term.value
		}
		if !p.word("AND") {
			break
		}
	}
	if p.skipSpace(); p.rest != "" {
		return q, fmt.Errorf("unexpected %q", p.rest)
	}
	if len(q.terms) == 0 || len(q.terms) > 10 {
		return q, fmt.Errorf("%d comparisons of tags, and not 1 to 10", len(q.terms))
	}
	for i, term := range q.terms {
		for _, other := range q.terms[:i] {
			if term.name == other.name && (term.op == "=" || other.op == "=" || term.op[0] == other.op[0]) {
				return q, fmt.Errorf("two comparisons of %s are not the ends of a range", term.name)
			}
		}
	}
	return q, nil
}

func (p *tagParser) term() (tagTerm, error) {
	term := tagTerm{name: "@container"}
	if !p.take("@container") {
		var err error
		if term.name = p.bare(); term.name == "" {
			if term.name, err = p.quoted('"'); err != nil {
				return term, err
			}
		}
	}
	for _, op := range []string{"<=", ">=", "=", "<", ">"} {
		if p.take(op) {
			var err error
			term.op = op
			term.value, err = p.quoted('\'')
			return term, err
		}
	}
	return term, fmt.Errorf("no comparison at %q", p.rest)
}

// match returns the tags of the expression if a blob has them all, and nil otherwise.
func (q tagQuery) match(tags map[string]string) map[string]string {
	found := map[string]string{}
	for _, term := range q.terms {
		value, there := tags[term.name]
		c := strings.Compare(value, term.value)
		if !there || !slices.Contains(map[int][]string{-1: {"<", "<="}, 0: {"=", "<=", ">="}, 1: {">", ">="}}[c], term.op) {
			return nil
		}
		found[term.name] = value
	}
	return found
}

type foundBlob struct {
	XMLName       xml.Name `xml:"Blob"`
	Name          string
	ContainerName string
	Tags          *tagSet
}

type foundBlobs struct {
	XMLName         xml.Name    `xml:"EnumerationResults"`
	ServiceEndpoint string      `xml:",attr"`
	Where           string      `xml:"Where"`
	Blobs           []foundBlob `xml:"Blobs>Blob"`
	NextMarker      string
}

// findByTags is Find Blobs by Tags, in one container or, with "", in all of them. The service answers from an index that
// may be some seconds behind; here it is not.
func (s *Service) findByTags(r *storage.Request, in string) *storage.Answer {
	where := r.Query.Get("where")
	q, err := parseTagQuery(where)
	if err != nil {
		return storage.Fail(http.StatusBadRequest, "InvalidQueryParameterValue", "Error parsing query: "+storage.Escaped(err.Error()))
	}
	if in != "" && q.container != "" && q.container != in {
		return storage.InvalidQuery()
	}
	if bad := storage.PageSizeOf(r); bad != nil {
		return bad
	}
	if bad := s.MarkerOf(r); bad != nil {
		return bad
	}
	all := map[string]foundBlob{}
	var names []string
	for name, c := range s.containers {
		if !c.deleted.IsZero() || in != "" && name != in || q.container != "" && name != q.container {
			continue
		}
		for blob := range c.blobs {
			b := c.blob(blob)
			if b == nil {
				continue
			}
			if tags := q.match(b.tags); tags != nil {
				names = append(names, name+"/"+blob)
				all[name+"/"+blob] = foundBlob{Name: blob, ContainerName: name, Tags: tagSetOf(tags)}
			}
		}
	}
	page, next := s.paged(r, names)
	if next != "" {
		next = s.ContainerMarker() + next
	}
	found := foundBlobs{ServiceEndpoint: s.Endpoint + "/", Where: where, NextMarker: next}
	for _, name := range page {
		found.Blobs = append(found.Blobs, all[name])
	}
	return xmlAnswer(found)
}
