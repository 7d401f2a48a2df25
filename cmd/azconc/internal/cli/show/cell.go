package show

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// marksMost is how many combining marks a character may carry. Languages need two.
const marksMost = 2

// Cell returns s as one line of characters whose widths terminals agree on: what is stored by other writers may hold sequences that
// a terminal obeys, change the direction of the line, or have a width that is known to one terminal alone, which would shift the
// rest of the line. Every such character becomes U+FFFD; white space becomes a space.
func Cell(s string) string {
	plain := true
	for i := range len(s) {
		plain = plain && s[i] >= ' ' && s[i] < 0x7f
	}
	if plain {
		return s
	}
	marks := 0
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) {
			if marks++; marks <= marksMost && !selector(r) {
				return r
			}
			return -1
		}
		marks = 0
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), r == utf8.RuneError, regional(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// selector reports whether r chooses between the narrow and the wide form of the character before it.
func selector(r rune) bool { return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef }

// regional reports whether r is half of a flag. Terminals disagree about the width of a half and of a pair. The same holds for
// the colours of skin, which otherwise join the character before them.
func regional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff || r >= 0x1f3fb && r <= 0x1f3ff }
