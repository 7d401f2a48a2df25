package live

import (
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// board has the last rows that each part had, and what is wrong with those that have failed since.
type board struct {
	parts  []known
	faults []fault
	note   string
	at     time.Time // the last round
	cost   cost
}

// known is the rows of a part.
type known struct {
	name string
	rows []Row
	at   time.Time // when they were fetched; zero if never
}

// fault is why a part is not known, or not any more.
type fault struct {
	name  string
	err   error
	since time.Time // of the rows that are still shown; zero without rows
}

// take adds a round, and reports whether it shows anything else than the last one. Parts that have failed keep their rows; parts that
// are no longer named lose them.
func (b *board) take(r round) (changed bool) {
	before, faults := b.parts, len(b.faults)
	defer func() {
		same := slices.EqualFunc(before, b.parts, func(a, b known) bool { return a.name == b.name && slices.EqualFunc(a.rows, b.rows, Row.like) })
		changed = !same || faults != len(b.faults)
	}()
	b.at, b.cost, b.note, b.faults = r.Began, r.Cost, r.Note, nil
	if r.Err != nil {
		since := time.Time{}
		for _, k := range before {
			since = later(since, k.at)
		}
		b.faults = append(b.faults, fault{"", r.Err, since})
		if len(r.Parts) == 0 {
			return changed
		}
	}
	b.parts = make([]known, 0, len(r.Parts))
	for _, p := range r.Parts {
		k := known{name: p.Name, rows: p.Rows, at: r.Began}
		if p.Err != nil {
			k.rows, k.at = nil, time.Time{}
			if i := slices.IndexFunc(before, func(k known) bool { return k.name == p.Name }); i >= 0 {
				k = before[i]
			}
			b.faults = append(b.faults, fault{p.Name, p.Err, k.at})
		}
		b.parts = append(b.parts, k)
	}
	return changed
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// rows returns the rows of a section for which keep is true. A row that is kept keeps the one that it is a part of.
func (b *board) rows(section string, keep func(Row) bool) (rows []Row) {
	for _, k := range b.parts {
		var outer *Row // of the next ones, and not kept yet
		for i, row := range k.rows {
			switch {
			case row.Section != section:
			case keep(row):
				if row.Inside && outer != nil {
					rows = append(rows, *outer)
				}
				outer = nil
				rows = append(rows, row)
			case !row.Inside:
				outer = &k.rows[i]
			}
		}
	}
	return rows
}

func all(Row) bool { return true }

// like reports whether two rows show the same.
func (r Row) like(o Row) bool { return r.ID == o.ID && slices.Equal(r.Cells, o.Cells) }

// age is the time since the state began, "" if that is not known.
func (r Row) age(at time.Time) string {
	if r.Since.IsZero() || at.IsZero() {
		return ""
	}
	return show.Duration(max(0, at.Sub(r.Since)).Truncate(time.Second))
}

// longestFirst sorts rows by what is in use for longest. Parts stay behind what they are a part of, and what is not in use is last.
func longestFirst(rows []Row) []Row {
	var groups [][]Row
	for _, r := range rows {
		if r.Inside && len(groups) > 0 {
			groups[len(groups)-1] = append(groups[len(groups)-1], r)
		} else {
			groups = append(groups, []Row{r})
		}
	}
	slices.SortStableFunc(groups, func(a, b []Row) int { return held(a).Compare(held(b)) })
	return slices.Concat(groups...)
}

// held returns since when a row, or a part of it, is in use; a late time if it is not.
func held(group []Row) time.Time {
	since := time.Unix(1<<40, 0)
	for _, r := range group {
		if !r.Idle && !r.Since.IsZero() && r.Since.Before(since) {
			since = r.Since
		}
	}
	return since
}

// holds reports whether a cell of the row contains a text, whatever the case.
func (r Row) holds(text string) bool {
	return slices.ContainsFunc(r.Cells, func(c string) bool { return strings.Contains(strings.ToLower(c), strings.ToLower(text)) })
}

// firstError returns the first error of a round, which decides about the exit code.
func (b *board) firstError() error {
	if len(b.faults) == 0 {
		return nil
	}
	return b.faults[0].err
}
