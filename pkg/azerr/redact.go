package azerr

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Parts of the patterns. A secret in a URL that was escaped for another URL, once or several times, is still a secret.
// One that ends at a quote or a bracket is in JSON, or in a Go map printed with %v.
const (
	equals = `(?:=|%(?:25)*3d|\\u003d|&#0*61;|&#x0*3d;)`
	assign = `["']?[ \t]*(?:` + equals + `|:)[ \t]*[\["']*`
)

// announced are the secrets that follow a name: the pattern of the text before them, the bytes that end them, their
// smallest length, and texts in lower case, one of which occurs in every text that the pattern matches.
var announced = []struct {
	before *regexp.Regexp
	ends   string
	least  int
	hints  []string
}{
	// The signature of a shared access signature. No word boundary before it: an escape sequence ends in letters too.
	{regexp.MustCompile(`(?i)sig` + equals), delimiters, 1, []string{"sig"}},
	{regexp.MustCompile(`(?i)\bsig(?:["'][ \t]*:[ \t]*[\["']*|:\[)`), delimiters, 1, []string{"sig"}},

	// Headers. The name of the scheme stays, because it explains refusals.
	{regexp.MustCompile(`(?i)authorization` + assign + `(?:[a-z]+[ \t]+)?`), delimiters, 1, []string{"authorization"}},
	{regexp.MustCompile(`(?i)SharedKey(?:Lite)?[ \t]+[a-z0-9-]+:`), delimiters, 1, []string{"sharedkey"}},
	{regexp.MustCompile(`(?i)Bearer[ \t]+`), delimiters, 16, []string{"bearer"}},

	// Connection strings, forms and environments.
	{regexp.MustCompile(`(?i)(?:account-?key|access_?key|azure_storage_key|encryption-key|client_secret|client_assertion|access_token|refresh_token)` + assign), delimiters, 1, []string{"key", "client_", "_token"}},

	// The service repeats a signature that it did not accept.
	{regexp.MustCompile(`(?i)signature found in the HTTP request `), blanks, 1, []string{"signature"}},
}

const (
	blanks     = " \t\r\n"
	delimiters = blanks + `&;,"'<>(){}[]`
)

// password is one in a URL.
var password = regexp.MustCompile(`://[^/\s:@"']*:([^/\s@"']+)@`)

// Redact blanks every secret in s: signatures of shared access signatures, account keys, tokens, authorization headers,
// passwords in URLs. What else a shared access signature says (permissions, times) stays, because it explains refusals.
// It rather blanks too much than too little, and blanking twice changes nothing.
func Redact(s string) string {
	spans := secretSpans(s)
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, span := range spans {
		if span.start >= at {
			b.WriteString(s[at:span.start])
			b.WriteString("REDACTED")
		}
		at = max(at, span.end)
	}
	b.WriteString(s[at:])
	return b.String()
}

type span struct{ start, end int }

// secretSpans returns where the secrets are, in order; they may overlap. Every pattern is matched against s itself, and
// names are searched for inside values too: in a garbled text the name of one secret may be where the value of another
// is expected. The time is linear in the length of s, because other parties control the text of a response.
func secretSpans(s string) []span {
	var spans []span
	lower := strings.ToLower(s)
	for _, secret := range announced {
		// Matching the patterns takes long, and most long texts contain no secret. One letter has no lower case that
		// equals it under a pattern's (?i).
		if !slices.ContainsFunc(secret.hints, func(hint string) bool { return strings.Contains(lower, hint) }) && !strings.Contains(s, "\u017f") {
			continue
		}
		end := 0
		for _, name := range secret.before.FindAllStringIndex(s, -1) {
			start := name[1]
			if start >= end { // otherwise it is inside the previous one, and ends with it
				end = len(s)
				if n := strings.IndexAny(s[start:], secret.ends); n >= 0 {
					end = start + n
				}
			}
			if end-start >= secret.least {
				spans = append(spans, span{start, end})
			}
		}
	}
	for _, m := range password.FindAllStringSubmatchIndex(s, -1) {
		spans = append(spans, span{m[2], m[3]})
	}
	spans = append(spans, keySpans(s)...)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return spans
}

// keySpans returns where account keys are, whatever precedes them: 64 bytes in base64, which are 86 digits and "==",
// each of which may be escaped for a URL.
func keySpans(s string) (spans []span) {
	const digits = 86
	for end := 0; ; {
		at := strings.IndexAny(s[end:], "=%")
		if at < 0 {
			return spans
		}
		at, end = end+at, end+at+1
		n := padding(s[at:])
		if n == 0 {
			continue
		}
		start, found, without := at, 0, 0
		for found < digits && start > 0 {
			if start >= 3 && s[start-3] == '%' && s[start-2] == '2' && strings.ContainsRune("bBfF", rune(s[start-1])) {
				if found == digits-2 {
					without = start - 2 // if it is not an escape, its last two characters are the last digits
				}
				start, found = start-3, found+1
				continue
			}
			if !isBase64(s[start-1]) {
				break
			}
			start, found = start-1, found+1
		}
		if found < digits && without > 0 {
			start, found = without, digits
		}
		if found == digits {
			spans = append(spans, span{start, at + n})
		}
	}
}

// padding returns the length of the "==" at the start of s, or 0 if there is none.
func padding(s string) int {
	switch {
	case strings.HasPrefix(s, "=="):
		return 2
	case len(s) >= 6 && strings.EqualFold(s[:6], "%3d%3d"):
		return 6
	}
	return 0
}

func isBase64(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/'
}
