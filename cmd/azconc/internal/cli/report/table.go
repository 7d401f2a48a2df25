package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

func (s *sheet) write(w *bytes.Buffer, form string) {
	if form == TSV {
		s.tsv(w)
		return
	}
	s.table(w)
}

// table writes a row for each element of a list, or one for anything else. Values that are lists or objects are left out, as the
// Azure CLI does, and so are columns without a value. The heading of a column is the name that --query knows.
func (s *sheet) table(w *bytes.Buffer) {
	columns, rows := s.lines()
	headings := map[int]string{}
	widths := map[int]int{}
	last := 0
	for _, row := range rows {
		for i, v := range row {
			if text := inTable(v); v != nil && !nested(v) {
				headings[i] = cell(s.headingOf(columns, i, len(row)))
				widths[i] = max(widths[i], utf8.RuneCountInString(text), utf8.RuneCountInString(headings[i]))
				last = max(last, i)
			}
		}
	}
	line := func(of func(int) string) {
		var b strings.Builder
		for i := range last + 1 {
			if width, shown := widths[i]; shown {
				text := of(i)
				b.WriteString(text + strings.Repeat(" ", width-utf8.RuneCountInString(text)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	if len(widths) == 0 {
		return
	}
	line(func(i int) string { return headings[i] })
	line(func(i int) string { return strings.Repeat("-", widths[i]) })
	for _, row := range rows {
		line(func(i int) string {
			if i >= len(row) {
				return ""
			}
			return inTable(row[i])
		})
	}
}

// headingOf returns the heading of a column. Those without a name have the Azure CLI's.
func (s *sheet) headingOf(columns []string, i, of int) string {
	switch {
	case i < len(columns):
		return columns[i]
	case of > 1:
		return "Column" + strconv.Itoa(i+1)
	}
	return cmp.Or(s.heading, "Result")
}

func nested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func inTable(v any) string {
	if nested(v) {
		return ""
	}
	return cell(inRow(v))
}

// tsv writes a line for each element of a list, or one for anything else, with a tab between the values of an object or list in
// it. Values are written as they are, as the Azure CLI does: a list is its length, an object is empty, and a bool is True or False
// in a row and true or false alone. A null, which is None there, is empty.
func (s *sheet) tsv(w *bytes.Buffer) {
	columns, rows := s.lines()
	for _, row := range rows {
		values := make([]string, len(row))
		for i, v := range row {
			values[i] = inRow(v)
		}
		if len(row) == 1 && len(columns) == 0 {
			if v, alone := row[0].(bool); alone {
				values[0] = strconv.FormatBool(v)
			}
		}
		fmt.Fprintln(w, strings.Join(values, "\t"))
	}
}

func inRow(v any) string {
	switch v := v.(type) {
	case nil, map[string]any:
		return ""
	case []any:
		return strconv.Itoa(len(v))
	case bool:
		if v {
			return "True"
		}
		return "False"
	case float64:
		return plain(v)
	case json.Number:
		return v.String()
	case string:
		return v
	}
	return fmt.Sprint(v)
}
