// Package live shows what changes: as a screen, or once as tables where there is no terminal.
//
// It knows sections and rows, and nothing of locks or queues. A view is fetched in parts, each by itself, so that one that fails
// leaves the others as they are; its own rows stay, and the error says since when they are no longer known.
//
// Rows and errors carry text that others have stored. Everything that is shown passes through show.Cell and the redactor.
package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

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
	known := slices.ContainsFunc(b.parts, func(p part) bool { return !p.at.IsZero() })
	if len(b.faults) > 0 && !known {
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
	if len(b.faults) == 0 {
		return nil
	}
	as := fail.Judge(b.faults[0].err)
	incomplete := fmt.Errorf("%s could not be seen", show.Plural(len(b.faults), "part"))
	return fail.WithFacts(fail.Judged(as.Code, as.Outcome, incomplete), listing{b, v}.facts())
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

// Section is a table of the view.
type Section struct {
	Key     string // by which rows name it, and its name in JSON
	Title   string
	Columns []Column
}

// Column is a column of a section.
type Column struct {
	Title string
	Right bool // numbers
	Long  bool // names, which are shortened where they are alike when there is no room
	Age   bool // of the row's Since; rows have no cell for it
	Drop  int  // on a narrow screen the column with the highest is left out first; 0 stays
}

// Row is a line of a section.
type Row struct {
	Section  string // Key of it
	ID       string // by which the row is found again after a refresh; unique in the section
	Cells    []string
	Since    time.Time // of the state; zero if it is not known
	Idle     bool      // neither held nor full
	Value    any       // in JSON
	Parts    []Row     // shown below it, such as the slots of a semaphore
	Commands []string  // what a user can do about it
}

// Source fetches a part of the view.
type Source struct {
	Name  string // of the part, for errors: "queue orders"
	Fetch func(ctx context.Context) ([]Row, error)
}

// View describes a view.
type View struct {
	Title    string // the command
	Sections []Section
	Interval time.Duration // between two rounds

	// Sources returns the parts. It is called in every round, so that parts come and go. A note names the omissions.
	Sources func(ctx context.Context) (parts []Source, note string, err error)
}

// Show shows the view on a screen until the user leaves it, or ctx ends. Without a terminal on both sides, or if another form is
// asked for, it prints what one round has fetched.
func Show(ctx context.Context, f *cli.Factory, v View) error {
	if !f.Text() && !f.JSON() && !f.Selects() {
		return fail.WithHint(fail.Usagef("a live view has several lists, which do not make one table"), "select one with --query, or omit -o")
	}
	if onScreen(f) {
		return screen(ctx, f, v)
	}
	return once(ctx, f, v)
}
