package protocol

import (
	"encoding/base64"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

const (
	blobETagPrefix, blobETagSuffix   = `"0x`, `"`
	tableETagPrefix, tableETagSuffix = `W/"datetime'`, `'"`
)

// encodeBase appends an ETag to b, shortened for the lineage. The two forms that the services use lose their fixed parts.
// Anything else is encoded whole in base64, because decoding must return exactly the same ETag.
func encodeBase(b *strings.Builder, e azcore.ETag) {
	s := string(e)
	switch s {
	case "":
		b.WriteByte('-')
		return
	case string(UnknownBase):
		b.WriteByte('?')
		return
	}
	if digits, ok := between(s, blobETagPrefix, blobETagSuffix); ok && isHex(digits) {
		b.WriteString(digits)
		return
	}
	if date, ok := between(s, tableETagPrefix, tableETagSuffix); ok && isEscapedDate(date) {
		b.WriteByte('t')
		b.WriteString(date)
		return
	}
	b.WriteByte('q')
	b.WriteString(base64.RawURLEncoding.EncodeToString([]byte(s)))
}

// between returns what is between prefix and suffix, which may not overlap.
func between(s, prefix, suffix string) (string, bool) {
	s, begins := strings.CutPrefix(s, prefix)
	s, ends := strings.CutSuffix(s, suffix)
	return s, begins && ends
}

// decodeBase appends to b what encodeBase was given.
func decodeBase(b *strings.Builder, s string) bool {
	switch {
	case s == "-":
	case s == "?":
		b.WriteString(string(UnknownBase))
	case s == "":
		return false
	case s[0] == 't':
		b.WriteString(tableETagPrefix)
		b.WriteString(s[1:])
		b.WriteString(tableETagSuffix)
	case s[0] == 'q':
		raw, err := base64.RawURLEncoding.DecodeString(s[1:])
		b.Write(raw)
		return err == nil && len(raw) > 0
	default:
		b.WriteString(blobETagPrefix)
		b.WriteString(s)
		b.WriteString(blobETagSuffix)
		return isHex(s)
	}
	return true
}

// isHex reports whether s is non-empty upper-case hexadecimal, the form of the Blob service's ETags. Lower case is not
// accepted, so that the encoding is reversible and cannot be confused with the prefixes t and q.
func isHex(s string) bool {
	for i := range len(s) { // a byte beyond ASCII is neither
		if c := s[i]; (c < '0' || c > '9') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return s != ""
}

// isEscapedDate reports whether s has only the characters of a date in a table's ETag, whose colons are escaped:
// 2026-01-31T12%3A00%3A00.1234567Z. None of them has a meaning in a lineage.
func isEscapedDate(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', c == '%', c == '-', c == '.', c == ':', c == '+':
		default:
			return false
		}
	}
	return true
}
