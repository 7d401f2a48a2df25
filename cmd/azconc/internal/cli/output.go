package cli

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// result is the result of a command: an object with snake_case names and an "outcome" for -o json, lines of text otherwise.
type result interface {
	Text(w io.Writer)
}

// Print writes a command's result to stdout, as text or JSON.
func (f *Factory) Print(r result) error {
	if f.Quiet {
		return nil
	}
	if f.JSON() {
		return f.printJSON(r)
	}
	var b bytes.Buffer
	r.Text(&b)
	text := b.String()
	if f.OutTerminal {
		text = show.Printable(text)
	}
	_, err := io.WriteString(f.Out, f.Redactor.Redact(text))
	return err
}

func (f *Factory) printJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(f.Out, f.Redactor.Redact(b.String()))
	return err
}
