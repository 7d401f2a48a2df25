package cli

import (
	"bytes"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// Result is the result of a command: an object with snake_case names and an "outcome" for -o json, lines of text otherwise.
type Result interface {
	Text(w io.Writer)
}

// Print writes a command's result to stdout, in the form that -o and --query ask for.
func (f *Factory) Print(r Result) error { return f.print(r, f.Redactor.Redact) }

// PrintAsIs is Print for a result whose secrets are what the user wants: the connection string of an emulator.
func (f *Factory) PrintAsIs(r Result) error {
	return f.print(r, func(text string) string { return text })
}

func (f *Factory) print(r any, redact func(string) string) error {
	if f.Quiet {
		return nil
	}
	var b bytes.Buffer
	hint, err := f.output.Write(&b, r)
	if err != nil {
		return err
	}
	text := b.String()
	if f.OutTerminal {
		text = show.Printable(text)
	}
	if _, err := io.WriteString(f.Out, redact(text)); err != nil {
		return err
	}
	if hint != "" {
		f.Notef("hint: %s", hint)
	}
	return nil
}

// printFailure prints the object of a command that failed, with -o json: a table or a line of values would be taken for a result. A
// query that does not apply to it selects nothing.
func (f *Factory) printFailure(object map[string]any) {
	if f.JSON() && f.print(object, f.Redactor.Redact) != nil {
		_, _ = io.WriteString(f.Out, "null\n")
	}
}
