package live

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// board has the results of a round: the last rows of each part, and the errors of those that have failed since. It does not
// change.
type board struct {
	parts    []part
	faults   []fault
	note     string
	at       time.Time     // the round
	requests int64         // of the command so far
	cost     int64         // those of the round
	pace     time.Duration // until the next round
}

// part is the rows of a source.
type part struct {
	name string
	rows []Row
	at   time.Time // when they were fetched; zero if never
}

// fault is why a part is not known, or no longer.
type fault struct {
	name  string // "" for the list of the parts
	err   error
	since time.Time // of the rows that are still shown; zero without rows
}

// atOnce is how many parts are fetched at a time.
const atOnce = 8

// fetch fetches every part once. Parts that fail keep the rows that they had before.
func fetch(ctx context.Context, f *cli.Factory, v View, before board) board {
	b := board{at: time.Now()}
	sent := f.Requests.Load()
	sources, note, err := v.Sources(ctx)
	b.note = note
	if err != nil {
		b.faults = append(b.faults, fault{err: err, since: before.at})
		if len(sources) == 0 {
			b.parts = before.parts
		}
	}
	fetched, errs := make([]part, len(sources)), make([]error, len(sources))
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, s := range sources {
		all.Go(func() error {
			rows, err := s.Fetch(ctx)
			redact(f, rows)
			fetched[i], errs[i] = part{s.Name, rows, b.at}, err
			return nil
		})
	}
	_ = all.Wait() // a part's error is the part's
	for i, p := range fetched {
		if errs[i] != nil {
			p.rows, p.at = nil, time.Time{}
			if i := slices.IndexFunc(before.parts, func(old part) bool { return old.name == p.name }); i >= 0 {
				p = before.parts[i]
			}
			b.faults = append(b.faults, fault{p.name, errs[i], p.at})
		}
		b.parts = append(b.parts, p)
	}
	b.requests = f.Requests.Load()
	b.cost = b.requests - sent
	return b
}

func redact(f *cli.Factory, rows []Row) {
	for _, r := range rows {
		for i := range r.Cells {
			r.Cells[i] = f.Redactor.Redact(r.Cells[i])
		}
		redact(f, r.Parts)
	}
}

// text is the fault in a line, with its secrets.
func (e fault) text() string {
	text := fail.Message(e.err, fail.Judge(e.err), "", strings.TrimPrefix(e.name, "queue "))
	var about []string
	if e.name != "" {
		about = append(about, e.name)
	}
	if !e.since.IsZero() {
		about = append(about, "as of "+e.since.UTC().Format(time.TimeOnly)+"Z")
	}
	if len(about) > 0 {
		text = strings.Join(about, ", ") + ": " + text
	}
	return show.Cell(text)
}

// rows returns the rows of a section.
func (b board) rows(section string) (rows []Row) {
	for _, p := range b.parts {
		for _, r := range p.rows {
			if r.Section == section {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// like reports whether two boards show the same.
func (b board) like(o board) bool {
	return len(b.faults) == len(o.faults) && slices.EqualFunc(b.parts, o.parts, func(a, b part) bool {
		return a.name == b.name && slices.EqualFunc(flat(a.rows), flat(b.rows), func(a, b Row) bool { return a.ID == b.ID && slices.Equal(a.Cells, b.Cells) })
	})
}

// flat returns rows with their parts.
func flat(rows []Row) (lines []Row) {
	for _, r := range rows {
		lines = append(append(lines, r), r.Parts...)
	}
	return lines
}

// longestFirst puts the rows in use for longest first, and those not in use last.
func longestFirst(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int { return a.heldSince().Compare(b.heldSince()) })
}

// heldSince returns since when a row, or the first of its parts, is in use: never, in the far future, if none is.
func (r Row) heldSince() time.Time {
	first := time.Unix(1<<40, 0)
	for _, r := range flat([]Row{r}) {
		if !r.Idle && !r.Since.IsZero() && r.Since.Before(first) {
			first = r.Since
		}
	}
	return first
}

// budget is how many requests a minute has at most. A round that costs more has a minute for each of them.
const budget = 200

// pace is the time until the next round. Rounds that change nothing make it longer, up to four times.
func pace(interval time.Duration, cost int64, quiet int) time.Duration {
	spaced := interval
	if cost > budget {
		spaced = max(spaced, time.Duration(cost)*time.Minute/budget)
	} else if cost > 0 {
		spaced = max(spaced, time.Minute/time.Duration(budget/cost))
	}
	return max(spaced, min(spaced<<min(quiet/3, 2), time.Minute))
}

// roundTimeout is the limit of a round's requests that the service does not answer. The next round is the retry.
const roundTimeout = 15 * time.Second

var noRetry = policy.RetryOptions{ShouldRetry: func(*http.Response, error) bool { return false }}

// watch fetches round after round until ctx ends. The next one begins after the last one has ended, so rounds do not overlap.
func watch(ctx context.Context, interval time.Duration, next func(context.Context, board) board, show func(board)) {
	var last board
	quiet := 0 // rounds since the last change
	for {
		within, cancel := context.WithTimeout(policy.WithRetryOptions(ctx, noRetry), roundTimeout)
		b := next(within, last)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if quiet++; !b.like(last) {
			quiet = 0
		}
		b.pace = pace(interval, b.cost, quiet)
		show(b)
		last = b
		select {
		case <-time.After(b.pace):
		case <-ctx.Done():
			return
		}
	}
}
