package pesstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
)

// Spans collects the spans of an observer's hooks.
type Spans struct {
	mu  sync.Mutex
	all []*span
}

type span struct {
	observe.Span
	parent *span
	ended  bool
	err    error
}

type spanKey struct{}

// Span is the function for observe.Hooks.
func (s *Spans) Span(ctx context.Context, one observe.Span) (context.Context, func(error)) {
	parent, _ := ctx.Value(spanKey{}).(*span)
	begun := &span{Span: one, parent: parent}
	s.mu.Lock()
	s.all = append(s.all, begun)
	s.mu.Unlock()
	return context.WithValue(ctx, spanKey{}, begun), func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		begun.ended, begun.err = true, err
	}
}

// Tree describes the spans in the order of their beginnings, a child indented by a space, with the resource and, of an error,
// the service's code or "lost". What has not ended is marked.
func (s *Spans) Tree() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	var describe func(parent *span, indent string)
	describe = func(parent *span, indent string) {
		for _, one := range s.all {
			if one.parent != parent {
				continue
			}
			text := indent + one.Name + " " + one.Resource
			switch o := azerr.Classify(one.err); {
			case !one.ended:
				text += " (open)"
			case one.err == nil:
			case o.Code != "":
				text += ": " + o.Code
			case o.Ambiguous():
				text += ": lost"
			default:
				text += ": " + fmt.Sprint(one.err)
			}
			out = append(out, text)
			describe(one, indent+" ")
		}
	}
	describe(nil, "")
	return out
}

// Requests returns the number of spans of requests.
func (s *Spans) Requests() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.Request != nil {
			n++
		}
	}
	return n
}

// Want returns "" if the spans are the wanted ones, and the difference otherwise.
func (s *Spans) Want(want ...string) string {
	if got := s.Tree(); !slices.Equal(got, want) {
		return "spans\n" + strings.Join(got, "\n") + "\nwant\n" + strings.Join(want, "\n")
	}
	return ""
}
