package cli_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
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
			flags.ParseETag, `"0x8D"`,
			[]string{`"0x8D"`, "0x8D", " 0x8D ", "\"0x8D\"\n", `"\"0x8D\""`, `"\"0x8D\""` + "\n"},
			[]string{"", " ", `"`, `""`, `"\"\""`, `"0x8D`, `0x8D"`, `"a","b"`, "a,b", "a b", "a*", "\"a\r\nX: y\"", "'0x8D'", `"'0x8D'"`, `W/"0x8D"`, "W/0x8D", weak, "null", `"null"`},
		},
		{
			flags.ParseTableETag, weak,
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
func given(add func(*pflag.FlagSet, *optimistic.Conditions, flags.ConditionSet), args ...string) error {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(set, new(optimistic.Conditions), flags.CondAll)
	return cmp.Or(set.Parse(args), flags.Check(set))
}

func TestAWriteTakesTheLegalPairsOnly(t *testing.T) {
	set := map[string]string{"--if-match": "a", "--if-none-match": "b", "--if-modified-since": "2026-01-01", "--if-unmodified-since": "2026-01-01"}
	legal := map[string]bool{"--if-match --if-unmodified-since": true, "--if-modified-since --if-none-match": true}
	for a := range set {
		for b := range set {
			if a >= b {
				continue
			}
			err := given(flags.WriteConditions, a, set[a], b, set[b])
			switch {
			case legal[a+" "+b] && err != nil:
				t.Errorf("%s with %s: %v, want it accepted", a, b, err)
			case !legal[a+" "+b] && (err == nil || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) || fail.HintOf(err) == ""):
				t.Errorf("%s with %s: %v, want both flags named and a way out", a, b, err)
			}
			if err := given(flags.ReadConditions, a, set[a], b, set[b]); err != nil {
				t.Errorf("%s with %s on a read: %v, want it accepted", a, b, err)
			}
		}
	}
}

func TestDaysAreDurations(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"7d": 7 * day, "1d12h": 36 * time.Hour, "0d": 0,
		"90": 90 * time.Second, "-1": -time.Second, "1h30m": 90 * time.Minute, "65535d": 65535 * day,
	} {
		if got, err := flags.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-d", "-1d", "0.5d", "soon", "1h2d", "1d2", "1d-1h", "1dd", "1d1d", "1 d", "7 days", "1e3d", "65536d", "99999999999999d"} {
		if got, err := flags.ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestSizesHaveUnits(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1048576": 1 << 20, "0x10": 16, "1KiB": 1 << 10, "3MiB": 3 << 20, "1GiB": 1 << 30, "2TiB": 2 << 40, "8388607TiB": 8388607 << 40,
		"0": 0, "-1": 0, "0KiB": 0, "1GB": 0, "1 GiB": 0, "GiB": 0, "1.5GiB": 0, "8388608TiB": 0, "x": 0,
	} {
		set, got := pflag.NewFlagSet("", pflag.ContinueOnError), int64(0)
		flags.Size(set, &got, "max-size", "")
		err := set.Parse([]string{"--max-size", text})
		if got != want || (err == nil) != (want > 0) || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
}
