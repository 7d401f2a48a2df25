package change

import (
	"slices"
	"strconv"

	"github.com/itchyny/gojq"

	"github.com/azconc/azconc/cmd/azconc/internal/jsonform"
)

// plan is how an expression is applied to parts of a document.
type plan struct {
	parts *jsonform.Parts
	rest  *gojq.Query // what is applied to the parts
	each  *gojq.Query // what is applied to a list of each element alone, if there is a list to use for Each
}

// planOf returns the plan for an expression all of which is edits at paths that it spells out: `.a.b = 1`, `|=`, `+=` and the like,
// `del(.a[0])`, `. + {a: 1}`, or edits of each element of one list, as `.a[].b = 1` and `.a |= map(f)`, joined by pipes. It is nil for any
// other expression, and wherever the parts are in doubt.
func planOf(query *gojq.Query) *plan {
	e := &edits{parts: &jsonform.Parts{}}
	if query.Meta != nil || len(query.Imports) > 0 || !e.stage(query) {
		return nil
	}
	p := &plan{parts: e.parts, rest: e.rest, each: e.each}
	if p.rest == nil {
		p.rest = identity()
	}
	return p
}

// edits collects parts. Its methods report whether they understand all of what they are given.
type edits struct {
	parts      *jsonform.Parts
	rest, each *gojq.Query
	list       []any // the path of each
}

// stage is an expression whose input and only kind of output is the document.
func (e *edits) stage(q *gojq.Query) bool {
	if q == nil || len(q.FuncDefs) > 0 || len(q.Patterns) > 0 {
		return false
	}
	if q.Term == nil && q.Op == gojq.OpPipe {
		return e.stage(q.Left) && e.stage(q.Right)
	}
	if t := bare(q); t != nil && t.Type == gojq.TermTypeQuery {
		return e.stage(t.Query)
	}
	if path, each, ok := elementwise(q); ok {
		if e.each != nil && !slices.Equal(e.list, path) {
			return false
		}
		e.list, e.each = path, pipe(e.each, each)
		e.parts.Add(jsonform.Each, path...)
		return true
	}
	e.rest = pipe(e.rest, q)
	if q.Term != nil {
		return e.step(q.Term)
	}
	switch q.Op {
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt:
		return e.edit(q)
	case gojq.OpAdd, gojq.OpMul:
		return isIdentity(q.Left) && e.merge(nil, q.Right) && e.reads(q.Right)
	}
	return false
}

func (e *edits) step(t *gojq.Term) bool {
	if len(t.SuffixList) > 0 {
		return false
	}
	switch t.Type {
	case gojq.TermTypeIdentity:
		return true
	case gojq.TermTypeFunc:
		return t.Func.Name == "del" && len(t.Func.Args) == 1 && e.removed(t.Func.Args[0])
	}
	return false
}

func (e *edits) removed(q *gojq.Query) bool {
	if len(q.FuncDefs) == 0 && q.Term == nil && q.Op == gojq.OpComma {
		return e.removed(q.Left) && e.removed(q.Right)
	}
	path, ok := pathOf(q)
	if ok {
		e.parts.Add(jsonform.Remove, path...)
	}
	return ok
}

func (e *edits) edit(q *gojq.Query) bool {
	path, ok := pathOf(q.Left)
	if !ok {
		return false
	}
	use := jsonform.Read
	switch q.Op {
	case gojq.OpModify:
		if r := q.Right; len(r.FuncDefs) == 0 && r.Op == gojq.OpAdd && isIdentity(r.Left) && isList(r.Right) && (&edits{}).reads(r.Right) {
			use = jsonform.Append
			break
		}
		e.parts.Add(jsonform.Modify, path...) // the right side sees nothing but the value
		return true
	case gojq.OpAssign:
		if isSmall(q.Right) {
			use = jsonform.Replace
		}
	case gojq.OpUpdateAdd:
		if isList(q.Right) {
			use = jsonform.Append
		} else if e.merge(path, q.Right) {
			return e.reads(q.Right)
		}
	}
	e.parts.Add(use, path...)
	return q.Op == gojq.OpModify || e.reads(q.Right)
}

// merge adds the members of an object literal as parts, if all their names are spelled out.
func (e *edits) merge(path []any, q *gojq.Query) bool {
	t := bare(q)
	if t == nil || t.Type != gojq.TermTypeObject || len(t.Object.KeyVals) == 0 {
		return false
	}
	var names []string
	for _, m := range t.Object.KeyVals {
		switch {
		case m.Key != "" && m.Key[0] != '$':
			names = append(names, m.Key)
		case m.KeyString != nil && m.KeyString.Queries == nil:
			names = append(names, m.KeyString.Str)
		default:
			return false
		}
	}
	for _, name := range names {
		e.parts.Add(jsonform.Read, append(path[:len(path):len(path)], name)...)
	}
	return true
}

// reads is an expression whose input is the document, of which it reads no more than what stands at paths that it spells out. A nil
// parts takes no paths.
func (e *edits) reads(q *gojq.Query) bool {
	if q == nil || len(q.FuncDefs) > 0 || len(q.Patterns) > 0 {
		return false
	}
	if q.Term != nil {
		return e.readsTerm(q.Term)
	}
	switch q.Op {
	case gojq.OpPipe:
		return e.reads(q.Left) // the right side sees nothing but what the left one makes
	case gojq.OpComma, gojq.OpAdd, gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod, gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe, gojq.OpAnd, gojq.OpOr, gojq.OpAlt:
		return e.reads(q.Left) && e.reads(q.Right)
	}
	return false
}

func (e *edits) readsTerm(t *gojq.Term) bool {
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeIndex:
		return e.readsPath(t)
	}
	for _, s := range t.SuffixList {
		if _, known := step(s.Index); s.Index != nil && !known {
			return false // it may read the document
		}
	}
	switch t.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return true
	case gojq.TermTypeString, gojq.TermTypeFormat:
		return t.Str != nil && e.readsString(t.Str)
	case gojq.TermTypeArray:
		return t.Array.Query == nil || e.reads(t.Array.Query)
	case gojq.TermTypeObject:
		return e.readsObject(t.Object)
	case gojq.TermTypeUnary:
		return e.readsTerm(t.Unary.Term)
	case gojq.TermTypeQuery:
		return e.reads(t.Query)
	case gojq.TermTypeIf:
		ok := e.reads(t.If.Cond) && e.reads(t.If.Then) && e.reads(t.If.Else)
		for _, other := range t.If.Elif {
			ok = ok && e.reads(other.Cond) && e.reads(other.Then)
		}
		return ok
	case gojq.TermTypeFunc:
		switch t.Func.Name {
		case "now", "env", "$ENV", "empty", "infinite", "nan", "null", "true", "false":
			return len(t.Func.Args) == 0
		}
	}
	return false
}

// readsPath is a term that begins with a path. What follows the path sees nothing but the value there.
func (e *edits) readsPath(t *gojq.Term) bool {
	var path []any
	if t.Type == gojq.TermTypeIndex {
		s, ok := step(t.Index)
		if !ok {
			return false
		}
		path = append(path, s)
	}
	constant := true
	for _, s := range t.SuffixList {
		next, known := step(s.Index)
		if s.Index != nil && !known {
			return false
		}
		if constant = constant && known; constant {
			path = append(path, next)
		}
	}
	if e.parts == nil || len(path) == 0 {
		return false
	}
	e.parts.Add(jsonform.Read, path...)
	return true
}

func (e *edits) readsString(s *gojq.String) bool {
	for _, q := range s.Queries {
		if !e.reads(q) {
			return false
		}
	}
	return true
}

func (e *edits) readsObject(o *gojq.Object) bool {
	for _, m := range o.KeyVals {
		switch {
		case m.Key == "$ENV" && m.Val == nil:
			continue
		case m.Key != "" && m.Key[0] == '$':
			return false
		case m.KeyString != nil && !e.readsString(m.KeyString):
			return false
		case m.KeyQuery != nil && !e.reads(m.KeyQuery):
			return false
		}
		if !e.reads(m.Val) { // without a value the name is a path, which merge and reads need not know
			return false
		}
	}
	return true
}

// pathOf returns the steps of an expression such as .a["b"][0].
func pathOf(q *gojq.Query) ([]any, bool) {
	if q == nil || q.Term == nil || len(q.FuncDefs) > 0 {
		return nil, false
	}
	var path []any
	t := q.Term
	switch t.Type {
	case gojq.TermTypeIdentity:
	case gojq.TermTypeIndex:
		s, ok := step(t.Index)
		if !ok {
			return nil, false
		}
		path = append(path, s)
	case gojq.TermTypeQuery:
		inner, ok := pathOf(t.Query)
		if !ok {
			return nil, false
		}
		path = inner
	default:
		return nil, false
	}
	for _, suffix := range t.SuffixList {
		s, ok := step(suffix.Index)
		if !ok {
			return nil, false
		}
		path = append(path, s)
	}
	return path, true
}

// step returns a name or an index that is spelled out.
func step(i *gojq.Index) (any, bool) {
	switch {
	case i == nil || i.IsSlice:
		return nil, false
	case i.Name != "":
		return i.Name, true
	case i.Str != nil:
		return i.Str.Str, i.Str.Queries == nil
	}
	t := bare(i.Start)
	if t == nil {
		return nil, false
	}
	sign := ""
	if t.Type == gojq.TermTypeUnary && t.Unary.Op == gojq.OpSub && len(t.Unary.Term.SuffixList) == 0 {
		sign, t = "-", t.Unary.Term
	}
	switch t.Type {
	case gojq.TermTypeNumber:
		n, err := strconv.ParseInt(sign+t.Number, 10, 32)
		return int(n), err == nil
	case gojq.TermTypeString:
		return t.Str.Str, sign == "" && t.Str.Queries == nil
	}
	return nil, false
}

// bare returns the term that a query is, or nil.
func bare(q *gojq.Query) *gojq.Term {
	if q == nil || q.Term == nil || len(q.FuncDefs) > 0 || len(q.Term.SuffixList) > 0 {
		return nil
	}
	return q.Term
}

func isIdentity(q *gojq.Query) bool {
	t := bare(q)
	return t != nil && t.Type == gojq.TermTypeIdentity
}

func isList(q *gojq.Query) bool {
	t := bare(q)
	return t != nil && t.Type == gojq.TermTypeArray
}

// isSmall tells whether a query is a scalar or an empty container that is spelled out.
func isSmall(q *gojq.Query) bool {
	t := bare(q)
	if t == nil {
		return false
	}
	switch t.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return true
	case gojq.TermTypeString:
		return t.Str.Queries == nil
	case gojq.TermTypeObject:
		return len(t.Object.KeyVals) == 0
	case gojq.TermTypeArray:
		return t.Array.Query == nil
	}
	return false
}
