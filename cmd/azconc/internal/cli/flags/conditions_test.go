package flags

import (
	"cmp"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
)

// An ETag is taken in each form in which azconc prints it: as text, and as a JSON string. What cannot be one is not sent: the service would
// refuse it as if another writer had changed the resource.
func TestAnETagIsTakenInEveryFormInWhichItIsPrinted(t *testing.T) {
	const weak = `W/"datetime'2026-01-01T00%3A00%3A00Z'"`
	for _, c := range []struct {
		parse   func(flag, text string) (azcore.ETag, error)
		want    string
		given   []string
		refused []string
	}{
		{
			ParseETag, `"0x8D"`,
			[]string{`"0x8D"`, "0x8D", " 0x8D ", "\"0x8D\"\n", `"\"0x8D\""`, `"\"0x8D\""` + "\n"},
			[]string{"", " ", `"`, `""`, `"\"\""`, `"0x8D`, `0x8D"`, `"a","b"`, "a,b", "a b", "a*", "\"a\r\nX: y\"", "'0x8D'", `"'0x8D'"`, `W/"0x8D"`, "W/0x8D", weak, "null", `"null"`},
		},
		{
			ParseTableETag, weak,
			[]string{weak, " " + weak + "\n", `W/datetime'2026-01-01T00%3A00%3A00Z'`, `"W/\"datetime'2026-01-01T00%3A00%3A00Z'\""`},
			[]string{"", " ", `""`, `W/`, `W/""`, "0x8D", `"0x8D"`, "'" + weak + "'", "W/\"a\nb\"", `W/"a","b"`, "null", weak[:len(weak)-1]},
		},
	} {
		for _, in := range append(c.given, "*", `"*"`) {
			want := c.want
			if strings.Contains(in, "*") {
				want = "*"
			}
			if got, err := c.parse("--if-match", in); err != nil || string(got) != want {
				t.Errorf("%q is %q, %v, want %q", in, got, err, want)
			}
		}
		for _, in := range c.refused {
			if got, err := c.parse("--if-match", in); err == nil || fail.Judge(err).Code != fail.ExitUsage {
				t.Errorf("%q is %q, %v, want a usage error", in, got, err)
			}
		}
	}
}

// given parses a command line and returns the usage error, if there is one.
func given(add func(*pflag.FlagSet, *optimistic.Conditions, ConditionSet), args ...string) error {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(set, new(optimistic.Conditions), CondAll)
	return cmp.Or(set.Parse(args), Check(set))
}

func TestAWriteTakesTheLegalPairsOnly(t *testing.T) {
	set := map[string]string{"--if-match": "a", "--if-none-match": "b", "--if-modified-since": "2026-01-01", "--if-unmodified-since": "2026-01-01"}
	legal := map[string]bool{"--if-match --if-unmodified-since": true, "--if-modified-since --if-none-match": true}
	for a := range set {
		for b := range set {
			if a >= b {
				continue
			}
			err := given(WriteConditions, a, set[a], b, set[b])
			switch {
			case legal[a+" "+b] && err != nil:
				t.Errorf("%s with %s: %v, want it accepted", a, b, err)
			case !legal[a+" "+b] && (err == nil || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) || fail.HintOf(err) == ""):
				t.Errorf("%s with %s: %v, want both flags named and a way out", a, b, err)
			}
			if err := given(ReadConditions, a, set[a], b, set[b]); err != nil {
				t.Errorf("%s with %s on a read: %v, want it accepted", a, b, err)
			}
		}
	}
}
