package report

import (
	"bytes"
	"io"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// Forms are the values of -o. Text is the default.
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
	query *Query
}

// Parse reads the values of -o and --query; given says whether -o is on the command line. A query without -o makes JSON, as it does
// with the Azure CLI, whose default form that is. An error is a usage error.
func Parse(form string, given bool, query string) (Output, error) {
	o := Output{form: form, given: given}
	switch form {
	case Text, JSON, Table, TSV:
	default:
		return o, fail.WithHint(fail.Usagef("--output %q is none of text, json, table and tsv", form), "-o json is the whole result; --query selects from it")
	}
	if query == "" {
		return o, nil
	}
	if form == Text && given {
		return o, fail.WithHint(fail.Usagef("--query does not apply to -o text"), "-o tsv prints bare values, -o json and -o table what their names say")
	}
	if form == Text {
		o.form = JSON
	}
	var err error
	o.query, err = Compile(query)
	return o, err
}

// Form returns the form of the result: text, json, table or tsv.
func (o Output) Form() string {
	if o.form == "" {
		return Text
	}
	return o.form
}

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
	if o.Form() == Text {
		if r, ok := result.(Texter); ok {
			r.Text(&b)
		}
		_, err := w.Write(b.Bytes())
		return "", err
	}
	switch {
	case o.form == JSON && o.query == nil:
		err = encoded(&b, result)
	case o.query == nil:
		var v *sheet
		if v, err = sheetOf(result); err == nil {
			v.write(&b, o.form)
		}
	default:
		var selected any
		if selected, err = o.query.apply(result); err != nil {
			break
		}
		if selected == nil {
			hint = o.query.hint(result)
		}
		if o.form == JSON {
			err = encoded(&b, selected)
			break
		}
		(&sheet{data: selected}).write(&b, o.form)
	}
	if err == nil {
		_, err = w.Write(b.Bytes())
	}
	return hint, err
}

// cell makes a text one line that a terminal does not interpret.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(show.Printable(text))
}
