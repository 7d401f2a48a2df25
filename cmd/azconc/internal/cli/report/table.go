package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table writes a row for each element of a list, or one for anything else. Members that are lists or objects are left out, as the
// Azure CLI does, and so are columns without a value. The heading of a column is the name that --query knows.
func (t *tree) table(w *bytes.Buffer) {
	var columns []string
	var rows []map[string]string
	for _, element := range t.elements() {
		row := map[string]string{}
		put := func(name string, v any) {
			text, scalar := tableCell(v)
			if !scalar || v == nil {
				return
			}
			row[name] = text
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
		switch v := element.(type) {
		case map[string]any:
			for _, name := range t.names(v) {
				put(name, v[name])
			}
		case []any:
			for i, value := range v {
				put("Column"+strconv.Itoa(i+1), value)
			}
		default:
			put(t.headingOfScalars(), v)
		}
		rows = append(rows, row)
	}
	if len(columns) == 0 {
		return
	}
	columns = t.inOrder(columns)
	widths := make([]int, len(columns))
	for i, name := range columns {
		widths[i] = utf8.RuneCountInString(cell(name))
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[name]))
		}
	}
	line := func(of func(int) string) {
		var b strings.Builder
		for i, width := range widths {
			text := of(i)
			b.WriteString(text + strings.Repeat(" ", width-utf8.RuneCountInString(text)+2))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	line(func(i int) string { return cell(columns[i]) })
	line(func(i int) string { return strings.Repeat("-", widths[i]) })
	for _, row := range rows {
		line(func(i int) string { return row[columns[i]] })
	}
}

// inOrder sorts columns, which are in the order in which rows have them, as the type of the rows or the expression has them.
func (t *tree) inOrder(columns []string) []string {
	known := t.columns
	if known == nil {
		known = t.made
	}
	sorted := slices.Clone(columns)
	slices.SortStableFunc(sorted, func(a, b string) int {
		at, bt := slices.Index(known, a), slices.Index(known, b)
		if at < 0 || bt < 0 {
			return 0
		}
		return at - bt
	})
	return sorted
}

func (t *tree) headingOfScalars() string {
	if t.heading != "" {
		return t.heading
	}
	return "Result" // as the Azure CLI has it
}

// elements are the rows: those of a list, or the value itself. Nothing has none.
func (t *tree) elements() []any {
	switch v := t.data.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{t.data}
}

// tableCell returns the text of a value, and whether it is a scalar.
func tableCell(v any) (text string, scalar bool) {
	switch v := v.(type) {
	case map[string]any, []any:
		return "", false
	default:
		return cell(inRow(v)), true
	}
}

// tsv writes a line for each element of a list, or one for anything else, with a tab between the values of an object or list in
// it. Values are written as they are, as the Azure CLI does: a list is its length, an object is empty, and a bool is True or False
// in a row and true or false alone. A null, which is None there, is empty.
func (t *tree) tsv(w *bytes.Buffer) {
	for _, element := range t.elements() {
		var values []string
		switch v := element.(type) {
		case map[string]any:
			columns := t.columns
			if columns == nil {
				columns = t.allNames()
			}
			for _, name := range columns {
				values = append(values, inRow(v[name]))
			}
		case []any:
			for _, value := range v {
				values = append(values, inRow(value))
			}
		case bool:
			values = []string{strconv.FormatBool(v)}
		default:
			values = []string{inRow(v)}
		}
		fmt.Fprintln(w, strings.Join(values, "\t"))
	}
}

// allNames returns the names that any row has, so that every line has the same columns.
func (t *tree) allNames() (all []string) {
	for _, element := range t.elements() {
		if object, ok := element.(map[string]any); ok {
			for _, name := range t.names(object) {
				if !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
		}
	}
	return t.inOrder(all)
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
