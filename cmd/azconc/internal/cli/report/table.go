package report

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// table writes a row for each element of a list, or one for anything else. Values that are lists or objects are left out, as the
// Azure CLI does, and so are columns without a value. The heading of a column is the name that --query knows; those without a name
// have the Azure CLI's.
func (s *sheet) table(w *bytes.Buffer) {
	columns, rows := s.lines()
	lines := make([]string, len(rows)+2)
	longest := 0
	for _, row := range rows {
		longest = max(longest, len(row))
	}
	for i := range longest {
		heading := cmp.Or(s.heading, "Result")
		if i < len(columns) {
			heading = columns[i]
		} else if longest > 1 {
			heading = "Column" + strconv.Itoa(i+1)
		}
		cells, width, shown := []string{cell(heading), ""}, 0, false
		for _, row := range rows {
			text := ""
			if i < len(row) && row[i] != nil && !nested(row[i]) {
				text, shown = cell(inRow(row[i])), true
			}
			cells = append(cells, text)
		}
		for _, c := range cells {
			width = max(width, utf8.RuneCountInString(c))
		}
		cells[1] = strings.Repeat("-", width)
		for n, c := range cells {
			if shown {
				lines[n] += c + strings.Repeat(" ", width-utf8.RuneCountInString(c)+2)
			}
		}
	}
	if lines[0] == "" {
		return
	}
	for _, l := range lines {
		fmt.Fprintln(w, strings.TrimRight(l, " "))
	}
}

// cell makes a text one line that a terminal does not interpret.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(show.Printable(text))
}

func nested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// tsv writes a line for each element of a list, or one for anything else, with a tab between the values of an object or list in
// it. Values are written as they are.
func (s *sheet) tsv(w *bytes.Buffer) {
	_, rows := s.lines()
	for _, row := range rows {
		values := make([]string, len(row))
		for i, v := range row {
			values[i] = inRow(v)
		}
		fmt.Fprintln(w, strings.Join(values, "\t"))
	}
}

// inRow is a value in a row: a list is its length, as with the Azure CLI, and an object and a null are empty.
func inRow(v any) string {
	switch v := v.(type) {
	case nil, map[string]any:
		return ""
	case []any:
		return strconv.Itoa(len(v))
	case float64:
		return plain(v)
	}
	return fmt.Sprint(v)
}
