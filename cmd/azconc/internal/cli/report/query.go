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
	made []string
}

const queryHint = `it is JMESPath over what -o json prints, such as --query etag, --query 'blobs[].name' or --query '{etag: etag, requests: requests}'`

// Compile reads an expression. An error is a usage error with the position of the fault. The library reports unknown functions and
// wrong numbers of arguments when it evaluates them, which is after the command has done its work, so they are looked for here.
func Compile(text string) (q *Query, err error) {
	refused := func(at int, why string) error {
		at = min(max(at, 0), len(text))
		return fail.WithHint(fail.Usagef("--query %s is not an expression: at character %d: %s", quoted(text), len([]rune(text[:at]))+1, why), queryHint)
	}
	defer func() {
		if p := recover(); p != nil {
			q, err = nil, refused(0, fmt.Sprint(p))
		}
	}()
	path, err := jmespath.Compile(text)
	if wrong, ok := errors.AsType[jmespath.SyntaxError](err); ok {
		return nil, refused(wrong.Offset, plainly(wrong, text))
	}
	if err != nil {
		return nil, refused(0, err.Error())
	}
	words := scan(text)
	if at, why := badCall(words); why != "" {
		return nil, refused(at, why)
	}
	return &Query{text: text, path: path, made: keys(words)}, nil
}

func quoted(text string) string { return "'" + text + "'" }

var (
	tokenName = regexp.MustCompile(`\bt[A-Z][A-Za-z]+`)
	typeNames = regexp.MustCompile(`\[\]jmespath\.jpType\{(.*)\}`)
)

// plainly is the message of a syntax error without the names of the library's tokens.
func plainly(wrong jmespath.SyntaxError, text string) string {
	message := strings.TrimPrefix(wrong.Error(), "SyntaxError: ")
	switch {
	case wrong.Offset >= len(text):
		return "it is incomplete"
	case tokenName.MatchString(message):
		return "unexpected " + text[max(wrong.Offset, 0):]
	}
	return lowerFirst(message)
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
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
	return fmt.Sprintf("--query %s does not apply to the result: %s; the command itself has succeeded", quoted(e.Query), lowerFirst(why))
}

func (e *EvaluationError) Unwrap() error { return e.Err }

// apply returns what the expression selects.
func (q *Query) apply(t *tree) (selected *tree, err error) {
	defer func() {
		if p := recover(); p != nil {
			selected, err = nil, q.failed(fmt.Errorf("%v", p))
		}
	}()
	data, err := q.path.Search(t.data)
	if err != nil {
		return nil, q.failed(err)
	}
	return &tree{data: data, order: t.order, made: q.made, first: t.first}, nil
}

func (q *Query) failed(err error) error {
	return fail.WithHint(&EvaluationError{Query: q.text, Err: err}, "-o json without --query prints the whole result")
}
