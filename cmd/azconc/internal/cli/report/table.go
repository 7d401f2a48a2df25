package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// Rower is a result, or an element of its list, whose row in a table is not its JSON.
type Rower interface {
	TableRow() map[string]any
}

// sheet is what a table or TSV shows: a list of objects, lists or scalars, or one of them alone.
type sheet struct {
	data    any
	columns []string // of objects, present or not; nil is those that any of them has, in alphabetical order
	heading string   // of the only column of a list of scalars
}

// encode writes the JSON of a value in one line.
func encode(w *bytes.Buffer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// decoded returns the JSON of a value: nil, a bool, a string, a float64, a []any or a map[string]any.
func decoded(value any) (data any, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &data)
	return data, err
}

// plain writes a number as JSON does, an integer as such.
func plain(f float64) string {
	text, _ := json.Marshal(f) // nothing makes an infinite one
	return string(text)
}

// sheetOf returns what a table shows without a query: the elements of the result's list, if it has exactly one, or the result itself.
// What is a list, and which columns there are, depends on the type and not on the data.
func sheetOf(result any) (*sheet, error) {
	s, rows := new(sheet), reflect.Indirect(reflect.ValueOf(result))
	if rows.Kind() == reflect.Struct && !own(rows.Type()) {
		columns, lists := members(rows.Type())
		s.columns = columns
		if len(lists) == 1 {
			rows = rows.FieldByIndex(lists[0].Index)
			s.columns, s.heading = nil, memberName(lists[0])
			if element := rows.Type().Elem(); element.Kind() == reflect.Struct && !own(element) {
				s.columns, _ = members(element)
			}
		}
	}
	value := rows.Interface()
	if r, ok := value.(Rower); ok {
		value = r.TableRow()
	} else if rows.Kind() == reflect.Slice {
		elements := make([]any, rows.Len())
		for i := range elements {
			elements[i] = rows.Index(i).Interface()
			if r, ok := elements[i].(Rower); ok {
				elements[i] = r.TableRow()
			}
		}
		value = elements
	}
	data, err := decoded(value)
	s.data = data
	return s, err
}

// own reports whether the columns of a type are not its fields.
func own(t reflect.Type) bool {
	for _, known := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[Rower]()} {
		if t.Implements(known) || reflect.PointerTo(t).Implements(known) {
			return true
		}
	}
	return false
}

// members returns the names of the members of a struct's JSON in their order, and its lists but for those that are optional or tagged
// with `rows:"-"`, which are not what a result is about.
func members(t reflect.Type) (names []string, lists []reflect.StructField) {
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		if !f.IsExported() || tag == "-" || f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			continue
		}
		names = append(names, memberName(f))
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8 && !strings.Contains(tag, ",omit") && f.Tag.Get("rows") != "-" {
			lists = append(lists, f)
		}
	}
	return names, lists
}

func memberName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return cmp.Or(name, f.Name)
}

// lines returns the rows of the sheet, each with its values in the order of the columns.
func (s *sheet) lines() (columns []string, rows [][]any) {
	elements, isList := s.data.([]any)
	if !isList && s.data != nil {
		elements = []any{s.data}
	}
	if columns = s.columns; columns == nil {
		all := map[string]bool{}
		for _, e := range elements {
			object, _ := e.(map[string]any)
			for name := range object {
				all[name] = true
			}
		}
		columns = slices.Sorted(maps.Keys(all))
	}
	for _, e := range elements {
		switch e := e.(type) {
		case map[string]any:
			values := make([]any, len(columns))
			for i, name := range columns {
				values[i] = e[name]
			}
			rows = append(rows, values)
		case []any:
			rows = append(rows, e)
		default:
			rows = append(rows, []any{e})
		}
	}
	return columns, rows
}

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
		cells, width, shown := []string{show.Cell(heading), ""}, 0, false
		for _, row := range rows {
			text := ""
			if i < len(row) && row[i] != nil && !nested(row[i]) {
				text, shown = show.Cell(inRow(row[i])), true
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

func nested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// tsv writes a line for each element of a list, or one for anything else, with a tab between the values of an object or list in
// it. A value that is alone is written as it is; one in a row, as a name, which does not break the row.
func (s *sheet) tsv(w *bytes.Buffer) {
	_, rows := s.lines()
	for _, row := range rows {
		values := make([]string, len(row))
		for i, v := range row {
			if values[i] = inRow(v); s.rows() {
				values[i] = show.Name(values[i])
			}
		}
		fmt.Fprintln(w, strings.Join(values, "\t"))
	}
}

// rows reports whether the sheet has rows of values, or several values, and is not one scalar.
func (s *sheet) rows() bool {
	_, list := s.data.([]any)
	_, object := s.data.(map[string]any)
	return list || object
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
