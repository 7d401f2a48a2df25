package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// result is the result of a command: an object with snake_case names and an "outcome" for -o json, lines of text otherwise.
type result interface {
	Text(w io.Writer)
}

// Print writes a command's result to stdout, in the form that was asked for.
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
		text = printable(text)
	}
	_, err := io.WriteString(f.Out, f.Redactor.Redact(text))
	return err
}

// printable replaces what a terminal could take for a command. Names, owners and reasons are whatever another writer has
// stored.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
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

// PrintFields prints name and value pairs one per line, values aligned; empty values are left out.
func PrintFields(w io.Writer, pairs ...string) {
	width := 0
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(w, "%-*s  %s\n", width, pairs[i], pairs[i+1])
		}
	}
}

// Plural is "1 conflict", "2 conflicts".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func TimeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func ByteCount(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1024, 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}

func Deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
