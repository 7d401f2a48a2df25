package root

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// printed is the help of a command as it is printed.
func printed(c *cobra.Command) string {
	var out bytes.Buffer
	printHelp(&out, c)
	return out.String()
}

func TestNoLineOfHelpIsTooLong(t *testing.T) {
	lines := 0
	for _, c := range commands() {
		text, _, _ := strings.Cut(printed(c), "\nExamples:\n") // which are printed as they are, to be copied
		for line := range strings.Lines(text) {
			lines++
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > columns {
				t.Errorf("%s: a line of %d columns: %s", c.CommandPath(), utf8.RuneCountInString(line), line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%s: a line ends with spaces: %q", c.CommandPath(), line)
			}
		}
	}
	if lines < 1000 {
		t.Errorf("only %d lines were looked at", lines)
	}
}

// TestNoLongParagraphOfHelpIsRepeated keeps what several verbs have in common in a topic.
func TestNoLongParagraphOfHelpIsRepeated(t *testing.T) {
	const long = 400 // characters, about four lines
	where := map[string]string{}
	for _, c := range commands() {
		for paragraph := range strings.SplitSeq(reflow(c.Long), "\n\n") {
			if len(paragraph) <= long {
				continue
			}
			if other := where[paragraph]; other != "" {
				t.Errorf("%s and %s have the same paragraph: %s", other, c.CommandPath(), paragraph)
			}
			where[paragraph] = c.CommandPath()
		}
	}
	if len(where) == 0 {
		t.Error("no paragraph was looked at")
	}
}

func TestLongLinesAreBroken(t *testing.T) {
	word := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for name, test := range map[string]struct{ text, want string }{
		"a paragraph is filled": {"one\ntwo\n" + word(20), "one two " + word(18) + "\n" + word(2)},
		"paragraphs stay apart": {"one\n\ntwo", "one\n\ntwo"},
		"entries stay apart":    {"list:\n  a  one\n  b  two", "list:\n  a  one\n  b  two"},
		"an entry is indented to its last column": {
			"  a  b  " + word(20), "  a  b  " + word(18) + "\n        " + word(2)},
		"its second line is filled": {"  a  " + word(3) + "\n     " + word(17), "  a  " + word(19) + "\n     " + word(1)},
		"an entry of one column":    {"  " + word(21), "  " + word(19) + "\n      " + word(2)},
		"a word is not broken":      {strings.Repeat("x", 120) + " y", strings.Repeat("x", 120) + "\ny"},
		"characters are counted":    {strings.Repeat("…", 60) + " " + strings.Repeat("…", 39), strings.Repeat("…", 60) + " " + strings.Repeat("…", 39)},
	} {
		if got := reflow(test.text); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}
