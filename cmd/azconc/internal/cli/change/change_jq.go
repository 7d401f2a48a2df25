package change

import (
	"context"

	"github.com/itchyny/gojq"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/jsonform"
)

// JqChange is the result of a jq expression on a JSON document.
type JqChange struct{ code *gojq.Code }

// MaxDocument is the length of the longest document that --jq and --set take. Its values take some 45 times as much memory, and those
// of a list of short numbers 160 times.
const MaxDocument = 16 << 20

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
	write, value := gojq.Marshal, any(nil)
	if base.Exists {
		doc, err := parseDocument(base.Data, "--jq")
		if err != nil {
			return nil, err
		}
		write, value = doc.Rewrite, doc.Value()
	}
	after, err := oneResult(ctx, c.code.RunWithContext(ctx, value))
	if err != nil {
		return nil, err
	}
	data, err := write(after)
	if err != nil {
		return nil, &fail.FilterError{What: "jq", Err: err}
	}
	return data, nil
}

// parseDocument parses the content for a flag that changes a document.
func parseDocument(data []byte, flag string) (*jsonform.Doc, error) {
	if len(data) > MaxDocument {
		return nil, fail.WithHint(&fail.FilterError{What: "the content has more than the " + show.Bytes(MaxDocument) + " that " + flag + " takes"},
			"--exec takes content of any length, as in --exec 'jq .n+=1'")
	}
	doc, err := jsonform.Parse(data)
	if err == nil {
		return doc, nil
	}
	if err := validJSON(data); err != nil {
		return nil, err
	}
	return nil, &fail.FilterError{What: "the content is not JSON", Err: err}
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
