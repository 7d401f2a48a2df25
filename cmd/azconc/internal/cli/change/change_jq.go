package change

import (
	"context"
	"runtime/debug"

	"github.com/itchyny/gojq"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/jsonform"
)

type JqChange struct {
	code  *gojq.Code
	parts *jqParts // nil if the expression may need all of a document
	above int      // a document of fewer bytes is decoded as a whole, which takes little then
}

// jqParts applies an expression to parts of a document.
type jqParts struct {
	parts *jsonform.Parts
	rest  *gojq.Code
	each  *gojq.Code // nil without a list to use for Each
}

// partsAbove is a size at which the memory of a document's values begins to count.
const partsAbove = 1 << 20

func newJQChange(expr string, env cli.Env) (Change, error) {
	query, err := gojq.Parse(expr)
	if err != nil {
		return nil, fail.Usagef("--jq: %s", show.OneLine(err.Error()))
	}
	environ := gojq.WithEnvironLoader(func() []string { return env })
	code, err := gojq.Compile(query, environ)
	if err != nil {
		return nil, fail.Usagef("--jq: %s", show.OneLine(err.Error()))
	}
	c := &JqChange{code: code, above: partsAbove}
	if plan := planOf(query); plan != nil {
		c.parts = &jqParts{parts: plan.parts}
		if c.parts.rest, err = gojq.Compile(plan.rest, environ); err == nil && plan.each != nil {
			c.parts.each, err = gojq.Compile(plan.each, environ)
		}
		if err != nil {
			c.parts = nil
		}
	}
	return c, nil
}

func (c *JqChange) Apply(ctx context.Context, base BaseContent) ([]byte, error) {
	if !base.Exists {
		return apply(ctx, c.code, nil, func(after any) ([]byte, error) { return jsonform.Rewrite(base.Data, after) })
	}
	if c.parts != nil && len(base.Data) >= c.above {
		// Whatever is unusual, an error of the expression too, is left to the way that has the whole document: it may show it.
		switch data, err := c.parts.apply(ctx, base.Data); {
		case err == nil:
			return data, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
	}
	doc, err := jsonform.Parse(base.Data)
	if err != nil {
		if err := validJSON(base.Data); err != nil {
			return nil, err
		}
		return nil, &fail.FilterError{What: "the content is not JSON", Err: err}
	}
	return apply(ctx, c.code, doc.Value(), func(after any) ([]byte, error) { return doc.Rewrite(after) })
}

// garbagePercent makes the values of one element after the other give way sooner than when they are as much as both texts.
const garbagePercent = 20

func (p *jqParts) apply(ctx context.Context, text []byte) ([]byte, error) {
	var each func(element any) ([]any, error)
	if p.each != nil {
		defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent))
		each = func(element any) ([]any, error) { return p.element(ctx, element) }
	}
	doc, err := jsonform.ParseParts(text, p.parts, each)
	if err != nil {
		return nil, err
	}
	return apply(ctx, p.rest, doc.Value(), func(after any) ([]byte, error) { return doc.Rewrite(after) })
}

// element returns what takes the place of an element.
func (p *jqParts) element(ctx context.Context, element any) ([]any, error) {
	result, err := oneResult(ctx, p.each.RunWithContext(ctx, []any{element}))
	if err != nil {
		return nil, err
	}
	elements, ok := result.([]any)
	if !ok {
		return nil, jsonform.ErrWhole
	}
	return elements, nil
}

// apply runs an expression, and writes its one result.
func apply(ctx context.Context, code *gojq.Code, before any, rewrite func(any) ([]byte, error)) ([]byte, error) {
	after, err := oneResult(ctx, code.RunWithContext(ctx, before))
	if err != nil {
		return nil, err
	}
	data, err := rewrite(after)
	if err != nil {
		return nil, &fail.FilterError{What: "jq", Err: err}
	}
	return data, nil
}

func oneResult(ctx context.Context, results gojq.Iter) (any, error) {
	value, ok := results.Next()
	if !ok {
		return nil, &fail.FilterError{What: "jq: the expression has no result, exactly one is needed"}
	}
	if err, failed := value.(error); failed {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &fail.FilterError{What: "jq", Err: err}
	}
	more, ok := results.Next()
	if err, failed := more.(error); failed {
		return nil, &fail.FilterError{What: "jq", Err: err}
	}
	if ok {
		return nil, &fail.FilterError{What: "jq: the expression has more than one result, exactly one is needed"}
	}
	return value, nil
}
