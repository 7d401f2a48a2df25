package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// once prints what one round has fetched. The first part that is not known decides about the exit code.
func once(ctx context.Context, f *cli.Factory, v View) error {
	b := fetch(ctx, f, v, board{})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	known := 0
	for _, p := range b.parts {
		if !p.at.IsZero() {
			known++
		}
	}
	if len(b.faults) > 0 && known == 0 {
		return b.faults[0].err
	}
	for _, e := range b.faults {
		f.Notef("%s", e.text())
	}
	if len(b.faults) == 0 || !f.JSON() { // with JSON, the object of the error has the rows
		if err := f.Print(listing{b, v}); err != nil {
			return err
		}
	}
	if b.note != "" {
		f.Notef("%s", b.note)
	}
	if len(b.faults) > 0 {
		return &incompleteError{listing{b, v}}
	}
	return nil
}

// listing is the result of a round.
type listing struct {
	board
	view View
}

// Text prints a table for each section that has rows.
func (l listing) Text(w io.Writer) {
	before := ""
	for _, s := range l.view.Sections {
		if rows := flat(l.rows(s.Key)); len(rows) > 0 {
			fmt.Fprint(w, before)
			before = "\n"
			g := newGrid(s, rows, l.at)
			for _, cells := range append([][]string{g.titles()}, g.cells...) {
				fmt.Fprintln(w, g.line(cells))
			}
		}
	}
}

// facts are the round as -o json prints it.
func (l listing) facts() map[string]any {
	facts := map[string]any{"at": show.Time(l.at), "requests": l.requests}
	for _, s := range l.view.Sections {
		values := []any{}
		for _, row := range l.rows(s.Key) {
			values = append(values, row.Value)
		}
		facts[s.Key] = values
	}
	if l.note != "" {
		facts["note"] = l.note
	}
	var faults []map[string]any
	for _, e := range l.faults {
		faults = append(faults, map[string]any{"part": e.name, "outcome": fail.Judge(e.err).Outcome, "error": e.text()})
	}
	if faults != nil {
		facts["errors"] = faults
	}
	return facts
}

// MarshalJSON implements json.Marshaler.
func (l listing) MarshalJSON() ([]byte, error) {
	facts := l.facts()
	facts["outcome"] = "listed"
	return json.Marshal(facts)
}

// incompleteError is the end of a view of which a part is not known.
type incompleteError struct{ seen listing }

func (e *incompleteError) Error() string {
	return fmt.Sprintf("%s could not be seen", show.Plural(len(e.seen.faults), "part"))
}
func (e *incompleteError) Verdict() fail.Verdict { return fail.Judge(e.seen.faults[0].err) }
func (e *incompleteError) Facts() map[string]any { return e.seen.facts() }
