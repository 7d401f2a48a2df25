package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// planted has the mutants, in one file for each tree of the repository. A mutant is a block of lines, and blank lines end it:
//
//	# what the code does wrong
//	file path/of/the/file.go
//	test ./package/of/the/test TestThatNotices|AnotherOne
//	- the text in the file
//	+ the mistake in its place
//
// The text may be a part of a line, or several lines, and must be in the file exactly once; indentation does not count. Without a
// line that begins with +, the text is removed.
//
//go:embed planted/*.txt
var planted embed.FS

// mutant is one mistake.
type mutant struct {
	name     string // what the code does wrong
	file     string
	old, new []string // lines without their indentation
	pkg, run string   // the test that notices: a package, and a pattern of test names
}

// load returns all mutants.
func load() (all []mutant, err error) {
	files, err := planted.ReadDir("planted")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := planted.ReadFile("planted/" + f.Name())
		if err != nil {
			return nil, err
		}
		some, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("planted/%s: %w", f.Name(), err)
		}
		all = append(all, some...)
	}
	return all, nil
}

func parse(text string) (all []mutant, err error) {
	for block := range strings.SplitSeq(text, "\n\n") {
		var m mutant
		for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
			switch key, value, _ := strings.Cut(line, " "); key {
			case "#":
				m.name = value
			case "file":
				m.file = value
			case "test":
				m.pkg, m.run, _ = strings.Cut(value, " ")
			case "-":
				m.old = append(m.old, strings.TrimSpace(value))
			case "+":
				m.new = append(m.new, strings.TrimSpace(value))
			default:
				return nil, fmt.Errorf("a line begins with none of # file test - +: %q", line)
			}
		}
		if m.name == "" || m.file == "" || m.pkg == "" || m.run == "" || len(m.old) == 0 {
			return nil, fmt.Errorf("a mutant needs # file test -:\n%s", block)
		}
		all = append(all, m)
	}
	return all, nil
}

// find returns the source of the mutant's file, and where in it the text begins and ends that the mutant replaces.
func (m mutant) find(root string) (source string, from, to int, err error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", 0, 0, err
	}
	var lines []string
	for _, line := range m.old {
		lines = append(lines, regexp.QuoteMeta(line))
	}
	at := regexp.MustCompile(strings.Join(lines, `\n[ \t]*`)).FindAllIndex(text, 2)
	switch len(at) {
	case 0:
		return "", 0, 0, fmt.Errorf("the text to replace is not in %s", m.file)
	case 1:
		return string(text), at[0][0], at[0][1], nil
	}
	return "", 0, 0, fmt.Errorf("the text to replace is more than once in %s", m.file)
}

// replacement is the mistake as text.
func (m mutant) replacement() string { return strings.Join(m.new, "\n") }
