package report

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jmespath/go-jmespath"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// query is a JMESPath expression. It may be applied more than once, but not concurrently.
type query struct {
	text string
	path *jmespath.JMESPath
}

const queryHint = `it is JMESPath over what -o json prints, such as --query etag, --query 'blobs[].name' or --query '{etag: etag, requests: requests}'`

// wrongCall is what the library says of unknown functions and wrong numbers of arguments.
var wrongCall = regexp.MustCompile(`unknown function|arity|number of arg`)

// compile reads an expression. An error is a usage error. The library reports wrong calls when it evaluates them, which is after the
// command has done its work, so the expression is tried on an empty result first. That does not reach the calls in a filter or a
// projection.
func compile(text string) (*query, error) {
	path, err := jmespath.Compile(text)
	q := &query{text, path}
	if err == nil {
		if _, err = q.search(map[string]any{}); err == nil || !wrongCall.MatchString(err.Error()) {
			return q, nil
		}
	}
	return nil, fail.WithHint(fail.Usagef("--query '%s' is not an expression: %s", text, strings.TrimPrefix(err.Error(), "SyntaxError: ")), queryHint)
}

// search applies the expression. The library panics on some.
func (q *query) search(data any) (selected any, err error) {
	defer func() {
		if p := recover(); p != nil {
			selected, err = nil, fmt.Errorf("%v", p)
		}
	}()
	return q.path.Search(data)
}

// typeNames is how the library names the types that it expects.
var typeNames = regexp.MustCompile(`\[\]jmespath\.jpType\{(.*)\}`)

// apply returns what the expression selects from a result, and a way out if that is nothing: az prints lists, and this command
// objects.
func (q *query) apply(result any) (s *sheet, hint string, err error) {
	data, err := decoded(result)
	if err != nil {
		return nil, "", err
	}
	selected, err := q.search(data)
	if err != nil {
		return nil, "", fail.WithHint(fmt.Errorf("--query '%s' does not apply to the result: %s; the command itself has succeeded",
			q.text, typeNames.ReplaceAllString(err.Error(), "$1")), "-o json without --query prints the whole result")
	}
	if selected == nil && strings.HasPrefix(q.text, "[") {
		hint = "the result is an object, not a list: name a member first, such as blobs[]"
	}
	return &sheet{data: selected}, hint, nil
}
