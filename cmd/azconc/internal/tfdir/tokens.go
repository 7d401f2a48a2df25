package tfdir

import "strings"

// token is a part of a file in Terraform's language.
type token struct {
	kind byte // 'i' identifier, 's' string, or the character itself
	text string
}

// tokens splits a file, as far as it takes to find blocks and their attributes: it leaves out comments and what is in here
// documents, and takes templates in strings for text. A file that is not well-formed gives some tokens, and no error.
func tokens(src string) (out []token) {
	for i := 0; i < len(src); {
		rest := src[i:]
		switch c := src[i]; {
		case c == '#' || strings.HasPrefix(rest, "//"):
			i += lineEnd(rest)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return out
			}
			i += 2 + end + 2
		case c == '"':
			n := quoted(rest)
			out = append(out, token{'s', strings.Trim(rest[:n], `"`)})
			i += n
		case strings.HasPrefix(rest, "<<"):
			i += hereDocument(rest)
		case letter(c):
			n := 1
			for n < len(rest) && (letter(rest[n]) || rest[n] >= '0' && rest[n] <= '9' || rest[n] == '-') {
				n++
			}
			out = append(out, token{'i', rest[:n]})
			i += n
		default:
			if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
				out = append(out, token{kind: c})
			}
			i++
		}
	}
	return out
}

func letter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func lineEnd(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}

// quoted returns the length of the string at the beginning of s, with its quotes.
func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '"':
			return i + 1
		case strings.HasPrefix(s[i:], "$${"), strings.HasPrefix(s[i:], "%%{"):
			i += 2
		case strings.HasPrefix(s[i:], "${"), strings.HasPrefix(s[i:], "%{"):
			i += 1 + template(s[i+1:])
		}
	}
	return len(s)
}

// template returns the length of the template at the beginning of s, from its { to before its }.
func template(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		case '"':
			i += quoted(s[i:]) - 1
		}
	}
	return len(s)
}

// hereDocument returns the length of the here document at the beginning of s, or of the << if there is none.
func hereDocument(s string) int {
	line := s[:lineEnd(s)]
	word := strings.TrimSpace(strings.TrimPrefix(line[2:], "-"))
	if word == "" || !letter(word[0]) {
		return 2
	}
	for at := len(line) + 1; at < len(s); {
		n := lineEnd(s[at:])
		if strings.TrimSpace(s[at:at+n]) == word {
			return at + n
		}
		at += n + 1
	}
	return len(s)
}
