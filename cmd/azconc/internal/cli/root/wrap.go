package root

import (
	"strings"
	"unicode/utf8"
)

// columns is the width of help. A terminal of 80 columns breaks few of its lines, and a paragraph stays readable.
const columns = 100

// reflow breaks the lines of a text at the width of help. Lines without indentation make up a paragraph, up to an empty line
// or an indented one, and its lines are filled. An indented line is kept: it is an entry of a list or a command. If it is too
// long, its rest is indented to its second column, and so are lines that continue it there.
func reflow(text string) string {
	var out []string
	lines := strings.Split(strings.TrimRight(text, " \n"), "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		i++
		hang := 0
		if strings.HasPrefix(line, " ") {
			hang = secondColumn(line)
		}
		for line != "" && i < len(lines) && lines[i] != "" && indent(lines[i]) == hang && (hang > indent(line) || hang == 0) {
			line += " " + strings.TrimSpace(lines[i])
			i++
		}
		out = append(out, wrap(line, hang))
	}
	return strings.Join(out, "\n")
}

// wrap breaks a line at spaces where it is wider than help, and indents the rest by hang.
func wrap(line string, hang int) string {
	var out strings.Builder
	for utf8.RuneCountInString(line) > columns {
		at := breakAt(line, hang)
		if at < 0 {
			break
		}
		out.WriteString(strings.TrimRight(line[:at], " ") + "\n")
		line = strings.Repeat(" ", hang) + strings.TrimLeft(line[at:], " ")
	}
	out.WriteString(line)
	return out.String()
}

// breakAt returns where to break a line: the last space up to the width of help, or else the first after it. It is negative if there is
// none beyond the indentation.
func breakAt(line string, hang int) int {
	at, column := -1, 0
	for i, r := range line {
		if r == ' ' && column > hang && strings.TrimSpace(line[:i]) != "" {
			if column > columns && at >= 0 {
				return at
			}
			at = i
		}
		column++
	}
	return at
}

// secondColumn returns where the text of an entry begins: after the last two spaces together behind its indentation, or else
// if that leaves too little room, a little to the right of it.
func secondColumn(line string) int {
	first := indent(line)
	if gap := strings.LastIndex(strings.TrimRight(line[first:], " "), "  "); gap >= 0 {
		rest := line[first+gap:]
		if at := utf8.RuneCountInString(line[:first+gap]) + len(rest) - len(strings.TrimLeft(rest, " ")); at <= columns/2 {
			return at
		}
	}
	return first + 4
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
