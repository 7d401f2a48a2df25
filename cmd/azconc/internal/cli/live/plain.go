package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// tables prints a table of each round. A round that fails is reported, and the next one follows; the last one decides about the
// exit code.
func tables(ctx context.Context, f *cli.Factory, r *rounds, o Options) error {
	var b board
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 1; ; n++ {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		b.parts = nil // only what is known now is printed
		last := n == o.Count
		r.patient = last
		b.take(r.next(ctx))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := printed(f, r, &b, n, last); err != nil || last {
			return err
		}
		timer.Reset(o.Interval)
	}
}

// printed prints a round, and returns the error with which the command ends if it was the last one.
func printed(f *cli.Factory, r *rounds, b *board, n int, last bool) error {
	failed := b.firstError()
	if failed != nil && n == 1 && b.bare() {
		return failed // nothing was seen: a command line that will not work
	}
	for i, e := range b.faults {
		if !last || i > 0 || !b.bare() {
			f.Notef("%s", e.text(nil))
		}
	}
	if failed != nil && last && f.JSON() {
		return &incomplete{b, r.view} // which prints the object
	}
	if n > 1 && !f.JSON() && !f.Quiet {
		if _, err := fmt.Fprintln(f.Out); err != nil {
			return err
		}
	}
	if err := f.Print(listing{b, r.view}); err != nil {
		return err
	}
	if b.note != "" {
		f.Notef("%s", b.note)
	}
	if !f.JSON() && !f.Quiet {
		f.Notef("%s", b.cost)
	}
	if failed != nil && last {
		return &incomplete{b, r.view}
	}
	return nil
}

// bare reports whether no part is known.
func (b *board) bare() bool {
	for _, k := range b.parts {
		if !k.at.IsZero() {
			return false
		}
	}
	return true
}

func (c cost) String() string {
	return fmt.Sprintf("requests: %d so far, %d in the last minute, %d in a round", c.Total, c.Minute, c.Round)
}

// text is the fault in a line. redact removes secrets; nil is a stream that does it by itself.
func (e fault) text(redact func(string) string) string {
	v := fail.Judge(e.err)
	text := fail.Message(e.err, v, "", strings.TrimPrefix(strings.TrimPrefix(e.name, "sessions in "), "queue "))
	if redact != nil {
		text = redact(text)
	}
	about := e.name
	if !e.since.IsZero() {
		about = strings.TrimPrefix(about+", as of "+e.since.UTC().Format(time.TimeOnly)+"Z", ", ")
	}
	if about != "" {
		text = about + ": " + text
	}
	return show.Cell(text)
}

// listing is the result of a round.
type listing struct {
	b    *board
	view View
}

func (t listing) Text(w io.Writer) {
	printedBefore := false
	for _, s := range t.view.Sections {
		rows := t.b.rows(s.Key, all)
		if len(rows) == 0 {
			continue
		}
		if printedBefore {
			fmt.Fprintln(w)
		}
		printedBefore = true
		g := newGrid(s, rows, time.Time{})
		fmt.Fprintln(w, g.line(g.titles()))
		for _, cells := range g.cells {
			fmt.Fprintln(w, g.line(cells))
		}
	}
}

// facts are the round as -o json prints it.
func (t listing) facts() map[string]any {
	facts := map[string]any{
		"at":       show.Time(t.b.at),
		"requests": t.b.cost.Total, "requests_last_minute": t.b.cost.Minute, "requests_round": t.b.cost.Round,
	}
	for _, s := range t.view.Sections {
		values := []any{}
		for _, row := range t.b.rows(s.Key, all) {
			if row.Value != nil {
				values = append(values, row.Value)
			}
		}
		facts[s.Key] = values
	}
	if t.b.note != "" {
		facts["note"] = t.b.note
	}
	var faults []map[string]any
	for _, e := range t.b.faults {
		faults = append(faults, map[string]any{"part": e.name, "outcome": fail.Judge(e.err).Outcome, "error": e.text(nil)})
	}
	if faults != nil {
		facts["errors"] = faults
	}
	return facts
}

func (t listing) MarshalJSON() ([]byte, error) {
	facts := t.facts()
	facts["outcome"] = "listed"
	return json.Marshal(facts)
}

// incomplete is the end of a view of which a part is not known.
type incomplete struct {
	b    *board
	view View
}

func (e *incomplete) Error() string {
	return fmt.Sprintf("%s could not be seen", show.Plural(len(e.b.faults), "part"))
}
func (e *incomplete) Verdict() fail.Verdict { return fail.Judge(e.b.firstError()) }
func (e *incomplete) Facts() map[string]any { return listing{e.b, e.view}.facts() }
