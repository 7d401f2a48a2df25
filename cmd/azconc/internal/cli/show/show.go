// Package show formats values for people.
package show

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Printable replaces control characters, which a terminal could interpret. Names, owners and reasons are stored by other writers.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// lineBreaks become spaces in a field: an owner with a line break would otherwise print a field of its own, such as "held  no".
var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\v", " ", "\f", " ", "\u0085", " ", "\u2028", " ", "\u2029", " ")

// Line returns a text that other writers store as one line.
func Line(s string) string { return lineBreaks.Replace(s) }

// Fields prints name and value pairs one per line, values aligned; empty values are left out.
func Fields(w io.Writer, pairs ...string) {
	width := 0
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(w, "%-*s  %s\n", width, pairs[i], Line(pairs[i+1]))
		}
	}
}

// WithMetadata adds metadata to the pairs of Fields.
func WithMetadata(pairs []string, metadata map[string]string) []string {
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		pairs = append(pairs, "metadata "+name, metadata[name])
	}
	return pairs
}

// Plural is "1 conflict", "2 conflicts".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func Bytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1024, 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}

// Unquoted returns the text of a JSON string, as --query prints a name or an id, and any other text as it is.
func Unquoted(text string) string {
	var plain string
	if strings.HasPrefix(text, `"`) && json.Unmarshal([]byte(text), &plain) == nil {
		return plain
	}
	return text
}

// Name returns a name as a list prints it: in quotes, with escapes, if it has what cannot be printed, such as a line break.
func Name(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) || Named(name) != name {
		return strconv.Quote(name)
	}
	return name
}

// Named returns the name of which Name returns text.
func Named(text string) string {
	if name, err := strconv.Unquote(text); err == nil && text[0] == '"' && Name(name) == text {
		return name
	}
	return text
}

func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}

// Quote quotes s as one word for a shell, so that a printed command can be copied.
func Quote(s string) string {
	plain := s != ""
	for _, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		plain = plain && (letter || c >= '0' && c <= '9' || strings.ContainsRune("-_./:=@%+,", c))
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// JSON prints a document that can be edited.
func JSON(w io.Writer, document any) {
	data, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		data = fmt.Appendf(nil, "{} (%v)", err)
	}
	fmt.Fprintf(w, "%s\n", data)
}

// InCommon returns how many bytes at the beginning of a are those of b.
func InCommon(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Cell returns s as one line of printable characters: what is stored by other writers may hold sequences that a terminal obeys, or
// change the direction of the line. Every such character becomes U+FFFD; white space becomes a space.
func Cell(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// Day is a day of 24 hours, whatever the clocks of a time zone do.
const Day = 24 * time.Hour

// Duration is "7 days", "1 day 2h30m", "90s" as "1m30s".
func Duration(d time.Duration) string {
	days, rest := d/Day, d%Day
	if days == 0 {
		return short(rest)
	}
	text := Plural(int(days.Abs()), "day")
	if rest != 0 {
		text += " " + short(rest.Abs())
	}
	if d < 0 {
		text = "-" + text
	}
	return text
}

// short leaves out the units after the last one that is not 0.
func short(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 && d != 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 && d != 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
