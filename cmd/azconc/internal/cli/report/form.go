// Package report gives the result of a command the form that -o and --query ask for: text for people, JSON, a table, or lines of
// values separated by tabs.
//
// All forms but text are made of the JSON of the result. A query is a JMESPath expression and is applied to that JSON. Columns are
// the members that the type of the result has, present or not: those of a script's input must not depend on the data. What a query
// selects has no type: its members are in alphabetical order, and a list, [name, size], has its values in the order of the expression.
// Otherwise a table and TSV are what the Azure CLI prints, except that ETags are shown, a null is empty, and a bool is true or false.
package report

import (
	"bytes"
	"cmp"
	"io"

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

// Texter is a result that has a text for people.
type Texter interface {
	Text(w io.Writer)
}

// Write writes a result. A value that is not a Texter has no text. hint is a way out for a query that selects nothing, if
// there is one.
func (o Output) Write(w io.Writer, result any) (hint string, err error) {
	var b bytes.Buffer
	switch {
	case o.Form() == Text:
		if r, ok := result.(Texter); ok {
			r.Text(&b)
		}
	case o.form == JSON && o.query == nil:
		err = encode(&b, result)
	default:
		var s *sheet
		if o.query == nil {
			s, err = sheetOf(result)
		} else {
			s, hint, err = o.query.apply(result)
		}
		if err != nil {
			return "", err
		}
		switch o.form {
		case JSON:
			err = encode(&b, s.data)
		case TSV:
			s.tsv(&b)
		default:
			s.table(&b)
		}
	}
	if err == nil {
		_, err = w.Write(b.Bytes())
	}
	return hint, err
}
