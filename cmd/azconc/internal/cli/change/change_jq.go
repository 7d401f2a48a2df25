package change

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/itchyny/gojq"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/jsonform"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
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
			"--exec takes longer content, as in --exec 'jq .n+=1'")
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

// UpdateHint adds a hint to the error of an update.
func UpdateHint(err error, o *optimistic.UpdateOptions) error {
	err = flags.UnconfirmedHint(err)
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	switch {
	case !ok || errors.Is(err, optimistic.ErrExists):
		return err
	case o.Conditions.IfMatch != "" && conflict.Current != "":
		return fail.WithHint(err, "read the current version and give its ETag, or omit --if-match to change whichever version is current")
	case conflict.Attempts > 1:
		return fail.WithHint(err, "it has many writers: try again, or give a larger --max-attempts")
	}
	return err
}

// CreateHint adds a hint to the error of a verb that has --create.
func CreateHint(err error, o *optimistic.UpdateOptions) error {
	if errors.Is(err, optimistic.ErrNotFound) && !o.Create && o.Conditions.IfMatch == "" && azerr.Absent(err) == "" {
		return fail.WithHint(err, "--create creates it")
	}
	return UpdateHint(err, o)
}

// PrintDiff prints a dry run. The diff is content, so it is not redacted.
func PrintDiff(f *cli.Factory, r cli.WriteResult, before, after []byte) error {
	from := "a/" + r.Resource
	if r.Created {
		from = "/dev/null"
	}
	r.Diff = Diff(from, "b/"+r.Resource, before, after)
	if !f.Text() {
		return f.Print(r)
	}
	_, err := f.Content().Write([]byte(r.Diff))
	return err
}

// Diff returns the differing lines of two texts, or a line that says that content which is no text differs.
func Diff(from, to string, before, after []byte) string {
	switch {
	case string(before) == string(after):
		return ""
	case !utf8.Valid(before) || !utf8.Valid(after):
		return "binary content of " + strings.TrimPrefix(to, "b/") + " differs\n"
	}
	return udiff.Unified(from, to, string(before), string(after))
}
