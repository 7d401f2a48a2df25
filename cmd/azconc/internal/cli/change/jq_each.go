package change

import (
	"regexp"

	"github.com/itchyny/gojq"
)

// varying are functions whose results depend on more than their input, or that do more than to return them. An expression with one of these
// cannot be applied twice.
var varying = regexp.MustCompile(`\b(now|input\w*|debug|stderr|halt\w*)\b`)

// elementwise tells whether an expression changes each element of one list without a look at the others, and returns the path of the list, and
// the same expression for a list that is the whole document.
func elementwise(q *gojq.Query) (path []any, each *gojq.Query, ok bool) {
	switch {
	case varying.MatchString(q.String()):
		return nil, nil, false
	case isMap(q):
		return nil, q, true
	case q.Term != nil:
		return removedEach(q)
	case q.Op == gojq.OpModify:
		if path, ok = pathOf(q.Left); ok {
			return path, q.Right, isMap(q.Right)
		}
	case q.Op == gojq.OpAssign, q.Op == gojq.OpUpdateAdd, q.Op == gojq.OpUpdateSub, q.Op == gojq.OpUpdateMul, q.Op == gojq.OpUpdateDiv,
		q.Op == gojq.OpUpdateMod, q.Op == gojq.OpUpdateAlt:
		if !(&edits{}).reads(q.Right) {
			return nil, nil, false
		}
	default:
		return nil, nil, false
	}
	path, left, ok := elements(q.Left)
	return path, &gojq.Query{Left: left, Op: q.Op, Right: q.Right}, ok
}

// removedEach is del of elements, or of what is in them.
func removedEach(q *gojq.Query) (path []any, each *gojq.Query, ok bool) {
	t := bare(q)
	if t == nil || t.Type != gojq.TermTypeFunc || t.Func.Name != "del" || len(t.Func.Args) != 1 {
		return nil, nil, false
	}
	path, inner, ok := elements(t.Func.Args[0])
	return path, &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: "del", Args: []*gojq.Query{inner}}}}, ok
}

// isMap tells whether a query is map(f) or [.[] | f].
func isMap(q *gojq.Query) bool {
	t := bare(q)
	switch {
	case t == nil:
		return false
	case t.Type == gojq.TermTypeFunc:
		return t.Func.Name == "map" && len(t.Func.Args) == 1
	case t.Type == gojq.TermTypeArray && t.Array.Query != nil:
		path, _, ok := elements(t.Array.Query)
		return ok && len(path) == 0
	}
	return false
}

// elements is an expression for values in the elements of a list: .a[], .a[].b, (.a[] | select(.b == 1)).c. It returns the path of the list, and
// the expression for a list that is the whole document.
func elements(q *gojq.Query) (path []any, inner *gojq.Query, ok bool) {
	switch {
	case q == nil || len(q.FuncDefs) > 0 || len(q.Patterns) > 0:
		return nil, nil, false
	case q.Term == nil && q.Op == gojq.OpPipe: // the right side sees nothing but an element
		path, inner, ok = elements(q.Left)
		return path, pipe(inner, q.Right), ok
	case q.Term == nil:
		return nil, nil, false
	}
	t := *q.Term
	at := 0
	switch t.Type {
	case gojq.TermTypeIdentity:
	case gojq.TermTypeIndex:
		s, known := step(t.Index)
		if !known {
			return nil, nil, false
		}
		path = append(path, s)
	case gojq.TermTypeQuery:
		if path, t.Query, ok = elements(t.Query); !ok {
			return nil, nil, false
		}
	default:
		return nil, nil, false
	}
	if t.Type != gojq.TermTypeQuery {
		for ; at < len(t.SuffixList) && !t.SuffixList[at].Iter; at++ {
			s, known := step(t.SuffixList[at].Index)
			if !known {
				return nil, nil, false
			}
			path = append(path, s)
		}
		if at == len(t.SuffixList) {
			return nil, nil, false
		}
		t.Type, t.Index, t.SuffixList = gojq.TermTypeIdentity, nil, t.SuffixList[at:]
	}
	for _, s := range t.SuffixList { // a question mark would end all of it at the first error
		if _, known := step(s.Index); !s.Iter && !known {
			return nil, nil, false
		}
	}
	return path, &gojq.Query{Term: &t}, true
}

func pipe(left, right *gojq.Query) *gojq.Query {
	if left == nil {
		return right
	}
	return &gojq.Query{Left: left, Op: gojq.OpPipe, Right: right}
}

func identity() *gojq.Query { return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}} }
