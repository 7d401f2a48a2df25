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
	code *gojq.Code
}

func newJQChange(expr string, env cli.Env) (Change, error) {
	query, err := gojq.Parse(expr)
	if err != nil {
		return nil, fail.Usagef("--jq: %s", show.OneLine(err.Error()))
	}
	code, err := gojq.Compile(query, gojq.WithEnvironLoader(func() []string { return env }))
	if err != nil {
		return nil, fail.Usagef("--jq: %s", show.OneLine(err.Error()))
	}
	return &JqChange{code: code}, nil
}

func (c *JqChange) Apply(ctx context.Context, base BaseContent) ([]byte, error) {
	var before any
	rewrite := func(after any) ([]byte, error) { return jsonform.Rewrite(base.Data, after) }
	if base.Exists {
		doc, err := jsonform.Parse(base.Data)
		if err != nil {
			if _, err := decodeJSON(base.Data); err != nil {
				return nil, err
			}
			return nil, &fail.FilterError{What: "the content is not JSON", Err: err}
		}
		before, rewrite = doc.Value(), func(after any) ([]byte, error) { return doc.Rewrite(after) }
	}
	results := c.code.RunWithContext(ctx, before)
	after, err := oneResult(ctx, results)
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
