package cli

import "strings"

// ShellQuote makes one word for a shell of s, so that a printed command can be copied.
func ShellQuote(s string) string {
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
