package azerr

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Parts of the patterns. A secret in a URL that was escaped for another URL, once or several times, is still a secret,
// and one cut off by a quote or a bracket is one in JSON, or in a Go map printed with %v.
const (
	equals = `(?:=|%(?:25)*3d|\\u003d|&#0*61;|&#x0*3d;)`
	assign = `["']?[ \t]*(?:` + equals + `|:)[ \t]*[\["']*`
)

// announced are the secrets that stand behind a name: the pattern of what is before them, the bytes that end them, and
// how long they are at least.
var announced = []struct {
	before *regexp.Regexp
	ends   string
	least  int
}{
	// The signature of a shared access signature. No word boundary before it: an escape sequence ends in letters too.
	{regexp.MustCompile(`(?i)sig` + equals), delimiters, 1},
	{regexp.MustCompile(`(?i)\bsig(?:["'][ \t]*:[ \t]*[\["']*|:\[)`), delimiters, 1},

	// Headers. The name of the scheme stays, because it explains refusals.
	{regexp.MustCompile(`(?i)authorization` + assign + `(?:[a-z]+[ \t]+)?`), delimiters, 1},
	{regexp.MustCompile(`(?i)SharedKey(?:Lite)?[ \t]+[a-z0-9-]+:`), delimiters, 1},
	{regexp.MustCompile(`(?i)Bearer[ \t]+`), delimiters, 16},

	// Connection strings, forms and environments.
	{regexp.MustCompile(`(?i)(?:account-?key|access_?key|azure_storage_key|encryption-key|client_secret|client_assertion|access_token|refresh_token)` + assign), delimiters, 1},

	// The service repeats a signature that it did not accept.
	{regexp.MustCompile(`(?i)signature found in the HTTP request `), blanks, 1},
}

const (
	blanks     = " \t\r\n"
	delimiters = blanks + `&;,"'<>(){}[]`
)

// recognised are the secrets known by their own form or by what follows them: the group of each pattern.
var recognised = []*regexp.Regexp{
	regexp.MustCompile(`://[^/\s:@"']*:([^/\s@"']+)@`), // a password

	// Whatever stands before it: an account key is 64 bytes in base64.
	regexp.MustCompile(`(?i)((?:[a-z0-9+/]|%2[bf]){86}(?:==|%3d%3d))`),
}

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
// names are looked for inside values too: in a garbled text one secret's name may stand where another's value is
// expected, and must still be seen. The effort is linear in the length of s all the same, since what an answer says is
// up to others.
func secretSpans(s string) []span {
	var spans []span
	for _, secret := range announced {
		end := 0
		for _, name := range secret.before.FindAllStringIndex(s, -1) {
			start := name[1]
			if start >= end { // else it is inside the previous one, and ends with it
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
	for _, pattern := range recognised {
		for _, m := range pattern.FindAllStringSubmatchIndex(s, -1) {
			spans = append(spans, span{m[2], m[3]})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return spans
}
