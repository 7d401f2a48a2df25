package conformance

import (
	"embed"
	"errors"
	"strings"
)

// rules are what is asked, one section in a file. A line is a request and the expected response:
//
//	write x - | If-Match: {etag x} => 412 ConditionNotMet | Azurite: ok, it looks elsewhere
//
// The request is METHOD resource?query, or a macro of macros.txt with its arguments, then headers and a body. In braces stands what is
// known only when it is asked; see world.fill. "ok" is any success. Where Azurite is known to differ, its response follows with the
// reason; "skip" is for what it cannot be asked. A line without "=>" has to succeed, and is no rule.
//
// Files with "base:" and "operation:" are tables of operations by conditions (matrix.go). Others are scripts: their first line is the page
// of the REST reference, and their parts begin with "#".
//
//go:embed rules/*.txt
var rules embed.FS

// read returns the lines of a section without its comments.
func read(section string) []string {
	text, err := rules.ReadFile("rules/" + section + ".txt")
	if err != nil {
		panic(err) // the suite's own list of sections
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	return lines
}

// rule is a line: a step and what it is answered.
type rule struct {
	step string
	expect
	asks bool // it has an expectation
}

func parseRule(line string) (r rule, err error) {
	var want string
	r.step, want, r.asks = strings.Cut(line, " => ")
	service, known, differs := strings.Cut(want, " | Azurite: ")
	r.service = said(service)
	if differs {
		emulator, why, ok := strings.Cut(known, ", ")
		if !ok {
			return r, errors.New("a difference without a reason: " + line)
		}
		r.emulator, r.why = said(emulator), why
	}
	return r, nil
}

// macros are the short forms of requests.
var macros = func() map[string]string {
	all := map[string]string{}
	for _, line := range read("macros") {
		name, form, _ := strings.Cut(line, ": ")
		all[name] = form
	}
	return all
}()

// expand puts the form of a macro, with its arguments, in the place of its name. What follows the first bar stays.
func expand(step string) string {
	call, rest, _ := strings.Cut(step, " | ")
	words := strings.Fields(call)
	form, ok := macros[words[0]]
	if !ok {
		return step
	}
	for i, name := range []string{"$1", "$2", "$3"} {
		argument := ""
		if i+1 < len(words) {
			argument = words[i+1]
		}
		form = strings.ReplaceAll(form, name, argument)
	}
	if rest != "" {
		form += " | " + rest
	}
	return form
}
