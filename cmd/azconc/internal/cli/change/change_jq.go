package change

import (
	"context"

	"github.com/itchyny/gojq"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/jsonform"
)

type JqChange struct {
	code  *gojq.Code
	parts *jsonform.Parts // nil if the expression may need all of a document
	above int             // a document of fewer bytes is decoded as a whole, which takes little then
}

// partsAbove is a size at which the memory of a document's values begins to count.
const partsAbove = 1 << 20

func newJQChange(expr string, env cli.Env) (Change, error) {
	query, err := gojq.Parse(expr)
	if err != nil {
		return nil, fail.Usagef("--jq: %s", show.OneLine(err.Error()))
	}
	code, err := gojq.Compile(query, gojq.WithEnvironLoader(func() []string { return env }))
	if err != nil {
		return nil, fail.Usagef("--jq: %s", show.OneLine(err.Error()))
	}
	return &JqChange{code: code, parts: partsOf(query), above: partsAbove}, nil
}

func (c *JqChange) Apply(ctx context.Context, base BaseContent) ([]byte, error) {
	if !base.Exists {
		return c.apply(ctx, nil, func(after any) ([]byte, error) { return jsonform.Rewrite(base.Data, after) })
	}
	if c.parts != nil && len(base.Data) >= c.above {
		// Whatever is unusual, an error of the expression too, is left to the way that has the whole document: it may show it.
		if doc, err := jsonform.ParseParts(base.Data, c.parts); err == nil {
			if data, err := c.apply(ctx, doc.Value(), func(after any) ([]byte, error) { return doc.Rewrite(after) }); err == nil || ctx.Err() != nil {
				return data, err
			}
		}
	}
	doc, err := jsonform.Parse(base.Data)
	if err != nil {
		if err := validJSON(base.Data); err != nil {
			return nil, err
		}
		return nil, &fail.FilterError{What: "the content is not JSON", Err: err}
	}
	return c.apply(ctx, doc.Value(), func(after any) ([]byte, error) { return doc.Rewrite(after) })
}

// apply runs the expression, and writes its one result.
func (c *JqChange) apply(ctx context.Context, before any, rewrite func(any) ([]byte, error)) ([]byte, error) {
	after, err := oneResult(ctx, c.code.RunWithContext(ctx, before))
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
