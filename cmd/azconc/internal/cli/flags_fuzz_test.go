package cli_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
)

// oneETag is an ETag as it stands in a header: strong or weak, and one alone.
var oneETag = regexp.MustCompile(`^(?:\*|(?:W/)?"[!#-~]+")$`)

// FuzzConditions gives any texts as conditions. What is accepted can be sent as it is: one ETag, a time to the second that
// is read again the same, a flags.GUID in lower case; and it is accepted again as it is.
func FuzzConditions(f *testing.F) {
	f.Add(`"0x8DE0A1B2C3D4E5F"`, "2026-01-31T12:00:05Z", "5F0C8C5E-6D3B-4D5B-9A53-7F3F5B1C2D3E")
	f.Add(`W/"datetime'2026-01-31T12%3A00%3A05Z'"`, "Sat, 31 Jan 2026 12:00:05 GMT", "")
	f.Add(`0x8D,"0x8E"`, "2026-01-31", "abc")
	f.Add(" * ", "", "\x00")
	f.Add("0", " ", "0")
	f.Fuzz(func(t *testing.T, etag, when, lease string) {
		if got, err := flags.ParseETag("--if-match", etag); err == nil {
			if got != "" && !oneETag.MatchString(string(got)) {
				t.Errorf("--if-match %q is sent as %q", etag, got)
			}
			if again, err := flags.ParseETag("--if-match", string(got)); err != nil || again != got {
				t.Errorf("%q is accepted, and then %q: %v", got, again, err)
			}
		} else if !strings.Contains(err.Error(), "--if-match") {
			t.Errorf("%q: the error does not name the flag: %v", etag, err)
		}
		if got, err := flags.ParseTime("--if-modified-since", when); err == nil && when != "" {
			if again, err := flags.ParseTime("--if-modified-since", got.Format(time.RFC3339)); err != nil || !again.Equal(got.Truncate(time.Second)) {
				t.Errorf("%q is %v, and again %v, %v", when, got, again, err)
			}
		}
		if got, err := flags.ParseLeaseID(lease); err == nil && got != "" && (!flags.GUID.MatchString(got) || !strings.EqualFold(got, strings.TrimSpace(lease))) {
			t.Errorf("--lease-id %q is %q", lease, got)
		}
		if err := given(flags.WriteConditions, "--if-match", etag, "--if-modified-since", when); err == nil && strings.TrimSpace(etag) != "" && strings.TrimSpace(when) != "" {
			t.Errorf("a write takes --if-match %q with --if-modified-since %q", etag, when)
		}
	})
}
