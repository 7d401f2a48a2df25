package report

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jmespath/go-jmespath"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// Query is a JMESPath expression. It may be applied more than once, but not concurrently.
type Query struct {
	text string
	path *jmespath.JMESPath
}

const queryHint = `it is JMESPath over what -o json prints, such as --query etag, --query 'blobs[].name' or --query '{etag: etag, requests: requests}'`

// Compile reads an expression. An error is a usage error. The library reports unknown functions and wrong numbers of arguments when
// it evaluates them, which is after the command has done its work, so the expression is tried on an empty result first. That does not
// reach the calls in a filter or a projection.
func Compile(text string) (*Query, error) {
	path, err := jmespath.Compile(text)
	q := &Query{text, path}
	if err == nil {
		if _, err = q.search(map[string]any{}); err != nil && !wrongCall.MatchString(err.Error()) {
			err = nil
		}
	}
	if err == nil {
		return q, nil
	}
	why := lowerFirst(strings.TrimPrefix(err.Error(), "SyntaxError: "))
	if wrong, ok := errors.AsType[jmespath.SyntaxError](err); ok {
		at := min(max(wrong.Offset, 0), len(text))
		if why = "unexpected " + text[at:]; at == len(text) {
			why = "it is incomplete"
		}
		why = fmt.Sprintf("at character %d: %s", len([]rune(text[:at]))+1, why)
	}
	return nil, fail.WithHint(fail.Usagef("--query '%s' is not an expression: %s", text, why), queryHint)
}

var (
	wrongCall = regexp.MustCompile(`unknown function|arity|number of arg`)
	typeNames = regexp.MustCompile(`\[\]jmespath\.jpType\{(.*)\}`)
)

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// search applies the expression. The library panics on some.
func (q *Query) search(data any) (selected any, err error) {
	defer func() {
		if p := recover(); p != nil {
			selected, err = nil, fmt.Errorf("%v", p)
		}
	}()
	return q.path.Search(data)
}

// EvaluationError is a query that cannot be applied to the result of a command that has done its work.
type EvaluationError struct {
	Query string
	Err   error
}

func (e *EvaluationError) Error() string {
	why := typeNames.ReplaceAllStringFunc(e.Err.Error(), func(types string) string {
		return strings.ReplaceAll(typeNames.FindStringSubmatch(types)[1], `"`, "")
	})
	return fmt.Sprintf("--query '%s' does not apply to the result: %s; the command itself has succeeded", e.Query, lowerFirst(why))
}

func (e *EvaluationError) Unwrap() error { return e.Err }

// apply returns what the expression selects from a result.
func (q *Query) apply(result any) (any, error) {
	data, err := decoded(result)
	if err != nil {
		return nil, err
	}
	selected, err := q.search(data)
	if err != nil {
		return nil, fail.WithHint(&EvaluationError{Query: q.text, Err: err}, "-o json without --query prints the whole result")
	}
	return selected, nil
}

// hint is a way out for an expression that selects nothing, if there is one: az prints lists, and this command objects.
func (q *Query) hint(result any) string {
	if !strings.HasPrefix(q.text, "[") {
		return ""
	}
	first := "outcome"
	if columns, _, list := shape(result); list != "" {
		first = list
	} else if len(columns) > 0 {
		first = columns[0]
	}
	return "the result is an object, not a list: name a member first, such as " + first + "[]"
}
