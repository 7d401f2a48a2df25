package flags

import (
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

func TestETagsAreTakenQuotedOrBare(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "*": "*", `"0x8D"`: `"0x8D"`, "0x8D": `"0x8D"`, ` 0x8D `: `"0x8D"`,
		`W/"datetime'2026-01-01T00%3A00%3A00Z'"`: `W/"datetime'2026-01-01T00%3A00%3A00Z'"`,
	} {
		if got, err := ParseETag("--if-match", in); err != nil || string(got) != want {
			t.Errorf("parseETag(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{`"0x8D`, `0x8D"`, `"a","b"`, "a,b", "a b", `""`, "a*", "\"a\r\nX: y\""} {
		if got, err := ParseETag("--if-match", in); err == nil || fail.Judge(err).Code != fail.ExitUsage {
			t.Errorf("parseETag(%q) = %q, %v, want a usage error", in, got, err)
		}
	}
}

func TestAWriteTakesTheLegalPairsOnly(t *testing.T) {
	set := map[string]func(*Conditions){
		"--if-match":            func(c *Conditions) { c.IfMatch = "a" },
		"--if-none-match":       func(c *Conditions) { c.IfNoneMatch = "b" },
		"--if-modified-since":   func(c *Conditions) { c.IfModifiedSince = "2026-01-01" },
		"--if-unmodified-since": func(c *Conditions) { c.IfUnmodifiedSince = "2026-01-01" },
	}
	legal := map[string]bool{"--if-match --if-unmodified-since": true, "--if-modified-since --if-none-match": true}
	for a, setA := range set {
		for b, setB := range set {
			if a >= b {
				continue
			}
			var c Conditions
			setA(&c)
			setB(&c)
			_, err := c.ForWrite()
			switch {
			case legal[a+" "+b] && err != nil:
				t.Errorf("%s with %s: %v, want it accepted", a, b, err)
			case !legal[a+" "+b] && (err == nil || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) || fail.HintOf(err) == ""):
				t.Errorf("%s with %s: %v, want both flags named and a way out", a, b, err)
			}
			if _, err := c.ForRead(); err != nil {
				t.Errorf("%s with %s on a read: %v, want it accepted", a, b, err)
			}
		}
	}
}
