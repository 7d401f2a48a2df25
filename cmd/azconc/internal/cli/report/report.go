// Package report gives the result of a command the form that -o and --query ask for: text for people, JSON, a table, or lines of
// values separated by tabs.
//
// All forms but text are made of the JSON of the result. A query is a JMESPath expression and is applied to that JSON. Columns are
// the members that the type of the result has, present or not: those of a script's input must not depend on the data. What a query
// selects has no type: its members are in alphabetical order, and a list, [name, size], has its values in the order of the expression.
// Otherwise a table and TSV are what the Azure CLI prints, except that ETags are shown, a null is empty, and a bool is true or false; a value of
// several that has a line break or a tab is in quotes.
package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jmespath/go-jmespath"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// The values of -o. Text is the default.
const (
	Text  = "text"
	JSON  = "json"
	Table = "table"
	TSV   = "tsv"
)

// Forms lists the values of -o, as the help and the completion show them.
const Forms = "{" + Text + " | " + JSON + " | " + Table + " | " + TSV + "}"

// Output is the form of the results of one run. The zero Output is text.
type Output struct {
	form  string
	given bool // -o is given
	query *query
}

// Parse reads the values of -o and --query; given says whether -o is on the command line. A query without -o makes JSON, as it does
// with the Azure CLI, whose default form that is. An error is a usage error.
func Parse(form string, given bool, query string) (o Output, err error) {
	o = Output{form: form, given: given}
	switch {
	case form != Text && form != JSON && form != Table && form != TSV:
		return o, fail.WithHint(fail.Usagef("--output %q is none of text, json, table and tsv", form), "-o json is the whole result; --query selects from it")
	case query == "":
		return o, nil
	case form == Text && given:
		return o, fail.WithHint(fail.Usagef("--query does not apply to -o text"), "-o tsv prints bare values, -o json and -o table what their names say")
	case form == Text:
		o.form = JSON
	}
	o.query, err = compile(query)
	return o, err
}

// Form returns the form of the result: text, json, table or tsv.
func (o Output) Form() string { return cmp.Or(o.form, Text) }

// Asked returns what asks for another form than text, such as "-o json", and "" for text.
func (o Output) Asked() string {
	switch {
	case o.query != nil && !o.given:
		return "--query"
	case o.Form() != Text:
		return "-o " + o.form
	}
	return ""
}

// Write writes a result. A value without a Text method has no text for people.
func (o Output) Write(w *bytes.Buffer, result any) (err error) {
	switch {
	case o.Form() == Text:
		if r, ok := result.(interface{ Text(w io.Writer) }); ok {
			r.Text(w)
		}
		return nil
	case o.form == JSON && o.query == nil:
		return encode(w, result)
	}
	var s *sheet
	if o.query == nil {
		s, err = sheetOf(result)
	} else {
		s, err = o.query.apply(result)
	}
	switch {
	case err != nil:
	case o.form == JSON:
		err = encode(w, s.data)
	case o.form == TSV:
		s.tsv(w)
	default:
		s.table(w)
	}
	return err
}

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

// apply returns what the expression selects from a result.
func (q *query) apply(result any) (*sheet, error) {
	data, err := decoded(result)
	if err != nil {
		return nil, err
	}
	selected, err := q.search(data)
	if err != nil {
		return nil, fail.WithHint(fmt.Errorf("--query '%s' does not apply to the result: %s; the command itself has succeeded",
			q.text, typeNames.ReplaceAllString(err.Error(), "$1")), "-o json without --query prints the whole result")
	}
	return &sheet{data: selected}, nil
}
