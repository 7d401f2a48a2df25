package change

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/jsonform"
)

// TypeSuffix follows a property's name in the name of the member that gives its type.
const TypeSuffix = "@odata.type"

// SetChange sets members of a JSON document. A path has names with dots between them; a backslash escapes a dot or a bracket. An element
// of an array is a.0 or a[0].
type SetChange struct {
	assignments []assignment
}

type assignment struct {
	path  []jsonform.Step
	value any
	as    string // the path as it was given
}

func newSetChange(args []string) (*SetChange, error) {
	return newAssignments("path", args, parsePath, `a path looks like a.b or a[0].b; a dot or a bracket in a name is written \. or \[`)
}

// NewSetProperties returns a SetChange for an entity, whose properties have names instead of paths.
func NewSetProperties(args []string) (*SetChange, error) {
	return newAssignments("name", args, parseProperty, "a name has letters, digits and underscores, and does not begin with a digit")
}

// newAssignments reads assignments to what parse reads: what=value, where the value is JSON, or else a string without its quotes.
func newAssignments(what string, args []string, parse func(string) ([]jsonform.Step, error), hint string) (*SetChange, error) {
	c := &SetChange{}
	for _, arg := range args {
		to, text, ok := strings.Cut(arg, "=")
		if !ok || to == "" {
			return nil, fail.Usagef("--set %q is not %s=value", arg, what)
		}
		path, err := parse(to)
		if err != nil {
			return nil, fail.WithHint(fail.Usagef("--set %q: %w", arg, err), hint)
		}
		value := any(text)
		if json.Valid([]byte(text)) {
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			_ = d.Decode(&value) // it is valid
		}
		c.assignments = append(c.assignments, assignment{path: path, value: value, as: to})
	}
	return c, nil
}

func parseProperty(name string) ([]jsonform.Step, error) {
	name = strings.ReplaceAll(name, `\.`, ".")
	for i, r := range strings.TrimSuffix(name, TypeSuffix) {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return nil, fmt.Errorf("a property's name cannot have %q there", r)
		}
	}
	return []jsonform.Step{{Name: name}}, nil
}

var (
	escaped = regexp.MustCompile(`\\([.\\[])`)
	part    = regexp.MustCompile(`^((?:[^.\[\\]|\\.|\\$)*)((?:\[[0-9]+\])*)(\.|$)`)
)

// parsePath splits a.b[0].c into its steps.
func parsePath(path string) (steps []jsonform.Step, err error) {
	for rest, more := path, true; more; {
		m := part.FindStringSubmatch(rest)
		switch {
		case m == nil:
			return nil, fmt.Errorf("%q is not a name with an index in brackets behind it", rest)
		case m[1] == "" && (m[2] == "" || len(steps) > 0):
			return nil, fmt.Errorf("the path has an empty part")
		case m[1] != "":
			steps = append(steps, jsonform.Step{Name: escaped.ReplaceAllString(m[1], "$1")})
		}
		for _, index := range strings.FieldsFunc(m[2], func(r rune) bool { return r == '[' || r == ']' }) {
			i, err := strconv.Atoi(index)
			if err != nil {
				return nil, err
			}
			steps = append(steps, jsonform.Step{Index: i, List: true})
		}
		rest, more = rest[len(m[0]):], m[3] == "."
	}
	return steps, nil
}

func (c *SetChange) Apply(_ context.Context, base BaseContent) ([]byte, error) {
	data := base.Data
	if !base.Exists {
		data = []byte("{}")
	}
	doc, err := parseDocument(data, "--set")
	if err != nil {
		return nil, err
	}
	for _, a := range c.assignments {
		if err := doc.Set(a.path, a.value); err != nil {
			return nil, &fail.FilterError{What: "--set " + a.as, Err: err}
		}
	}
	return doc.Text(), nil
}
