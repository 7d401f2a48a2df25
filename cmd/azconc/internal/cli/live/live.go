package live

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

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
	Long  bool // names, which are shortened where they are alike, before other columns are cut at all
	Age   bool // of the row's Since; rows have no cell for it, and tables in a pipe leave it out
	Drop  int  // on a narrow screen the column with the highest is left out first; 0 stays
}

// Row is a line of a section.
type Row struct {
	Section string // Key of it
	ID      string // by which the row is found again after a refresh; unique in the section
	Cells   []string
	Since   time.Time // of the state; zero if it is not known
	Idle    bool      // neither held nor full: such rows can be left out
	Inside  bool      // a part of the row before it
	Value   any       // in JSON; nil for a row that is a part of another's value

	Break, Redrive, Peek *Action
}

// Action is what a user can do about a row, after a question.
type Action struct {
	Question string
	Command  string // the command that does the same

	// Do carries it out, and returns what has happened: one line for an action that changes something, the text to read for one
	// that looks at something. It calls note with its progress.
	Do func(ctx context.Context, note func(string)) (string, error)
}

// Source fetches a part of the view.
type Source struct {
	Name  string // of what is fetched, for errors: "queue orders"
	Fetch func(ctx context.Context) ([]Row, error)
}

// View says what is shown.
type View struct {
	Title    string // the command
	Sections []Section

	// Sources returns the parts. It is called in every round, so that parts come and go. A note says what is left out.
	Sources func(ctx context.Context) (parts []Source, note string, err error)
}

// Only returns the sources of a view whose parts stay the same.
func Only(parts ...Source) func(context.Context) ([]Source, string, error) {
	return func(context.Context) ([]Source, string, error) { return parts, "", nil }
}

// Options are the flags of a live view.
type Options struct {
	Interval time.Duration
	Count    int  // tables to print; 0 is no end
	Tables   bool // tables even in a terminal
}

// DefaultInterval is the time between two rounds. A lease lasts 15 s at least, so no holder is missed.
const DefaultInterval = 5 * time.Second

// AddInterval adds --interval.
func (o *Options) AddInterval(set *pflag.FlagSet) {
	set.DurationVar(&o.Interval, "interval", DefaultInterval, "time between two rounds of requests, at least 1s; longer on a screen if a minute had more than 200 requests, or nothing changes")
}

// AddWatch adds --watch and --interval to a verb that lists.
func (o *Options) AddWatch(set *pflag.FlagSet, watch *bool) {
	set.BoolVar(watch, "watch", false, "show it live, until it is left")
	o.AddInterval(set)
}

// CheckWatch checks the values of the flags that AddWatch has added.
func (o *Options) CheckWatch(set *pflag.FlagSet, watch bool) error {
	if set.Changed("interval") && !watch {
		return fail.WithHint(fail.Usagef("--interval does not apply without --watch"), "give --watch too, or omit it")
	}
	return o.Check()
}

// Check checks the values of the flags.
func (o *Options) Check() error {
	switch {
	case o.Interval < time.Second:
		return fail.Usagef("--interval %s is less than 1s", show.Duration(o.Interval))
	case o.Count < 0:
		return fail.Usagef("--count %d is negative", o.Count)
	}
	return nil
}

// The limits of a round's requests that the service does not answer. After roundTimeout the next round is the retry; after the last
// round there is none.
const (
	roundTimeout = 15 * time.Second
	lastTimeout  = 2 * time.Minute
)

// Show shows the view until the user leaves it, or ctx ends. Without a terminal on both sides it prints tables.
func Show(ctx context.Context, f *cli.Factory, v View, o Options) error {
	if !f.Text() && !f.JSON() && !f.Selects() {
		return fail.WithHint(fail.Usagef("a live view has several lists, which do not make one table"), "select one with --query, or omit -o")
	}
	r := newRounds(f, v)
	if onScreen(f, o) {
		return screen(ctx, f, r, o)
	}
	err := tables(ctx, f, r, o)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}
