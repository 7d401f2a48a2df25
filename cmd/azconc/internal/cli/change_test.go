package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// parsed returns the change of flags that can be parsed.
func parsed(t *testing.T, flags change.ChangeFlags, env ...string) change.Change {
	t.Helper()
	c, err := flags.Parse(env)
	if err != nil {
		t.Fatal(err)
	}
	s, _, _, _ := cli.TestStreams()
	f := cli.NewFactory(s, nil)
	defer f.Close()
	if err := change.Prepare(t.Context(), f, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func applied(t *testing.T, c change.Change, base string) (string, error) {
	t.Helper()
	out, err := c.Apply(t.Context(), change.BaseContent{Resource: "jobs/a", Exists: base != "", ETag: `"1"`, Attempt: 1, Data: []byte(base)})
	return string(out), err
}

func TestJQKeepsIntegersExact(t *testing.T) {
	for _, c := range []struct{ expr, base, want string }{
		{".n += 1", `{"n":1}`, `{"n":2}`},
		{".n += 1", `{"n":9007199254740993}`, `{"n":9007199254740994}`},
		{".n += 1", `{"n":123456789012345678901234567890}`, `{"n":123456789012345678901234567891}`},
		{".m = 1", `{"big":18446744073709551617,"f":1.10}`, `{"big":18446744073709551617,"f":1.10,"m":1}`},
		{".", "{ \"b\": 1,\n  \"a\": 2 }\n", "{ \"b\": 1,\n  \"a\": 2 }\n"},
		{".n += 1", "{\"n\":1}\n", "{\"n\":2}\n"},
		{".n += 1 | .m = 3", "{\n  \"z\": 1.0,\n  \"n\": 1\n}\n", "{\n  \"z\": 1.0,\n  \"n\": 2,\n  \"m\": 3\n}\n"},
		{`{n: 1}`, "", `{"n":1}`},
		{`.n = $ENV.WHO`, `{}`, `{"n":"me"}`},
		{`.h = "<&>"`, `{}`, `{"h":"<&>"}`},
	} {
		if got, err := applied(t, parsed(t, change.ChangeFlags{JQ: c.expr}, "WHO=me"), c.base); err != nil || got != c.want {
			t.Errorf("%s on %s = %s, %v, want %s", c.expr, c.base, got, err, c.want)
		}
	}
}

func TestAJQThatCannotBeAppliedIsAFilterFailure(t *testing.T) {
	for _, c := range []struct{ expr, base, want string }{
		{".n += 1", `not json`, "not JSON"},
		{".n += 1", `{} {}`, "more than one JSON value"},
		{".n += 1", "\xef\xbb\xbf{}", "it begins with a byte order mark"},
		{".n += 1", "\xff\xfe{\x00}\x00", "UTF-16"},
		{"empty", `{}`, "no result"},
		{".[]", `[1,2]`, "more than one result"},
		{".a.b.c", `{"a":1}`, "jq: "},
		{`error("no")`, `{}`, "no"},
		{"1, error(\"late\")", `{}`, "late"},
	} {
		_, err := applied(t, parsed(t, change.ChangeFlags{JQ: c.expr}), c.base)
		if err == nil || fail.Judge(err).Code != fail.ExitFilter || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on %s: %v, want a filter failure about %q", c.expr, c.base, err, c.want)
		}
	}
}

func TestSetMakesObjectsAndMindsArrays(t *testing.T) {
	for _, c := range []struct {
		set        []string
		base, want string
	}{
		{[]string{"a.b=1", "c=x"}, `{}`, `{"a":{"b":1},"c":"x"}`},
		{[]string{"a=9007199254740993"}, `{"b":9007199254740993}`, `{"b":9007199254740993,"a":9007199254740993}`},
		{[]string{"n=2"}, "{\n  \"z\": 1.0,\n  \"n\": 1\n}\n", "{\n  \"z\": 1.0,\n  \"n\": 2\n}\n"},
		{[]string{`o={"z":1.50,"a":2}`}, `{"n": 1}`, `{"n": 1, "o": {"a": 2, "z": 1.50}}`},
		{[]string{"l.1=9", "l.3=10"}, `{"l":[1,2,3]}`, `{"l":[1,9,3,10]}`},
		{[]string{`a\.b=true`}, `{}`, `{"a.b":true}`},
		{[]string{"c[0]=1", "c[1].d=x", `c\[0]=2`, `e\f=3`}, `{"c":[0]}`, `{"c":[1,{"d":"x"}],"c[0]":2,"e\\f":3}`},
		{[]string{"[1]=9", "[0][0]=8"}, `[[1],2]`, `[[8],9]`},
		{[]string{"n=2"}, "{\n  // how many\n  \"n\": 1,\n}\n", "{\n  // how many\n  \"n\": 2,\n}\n"},
		{[]string{"a=null", "b={\"x\":[1]}", `c="1"`, "d=", "e=1 2"}, `{}`, `{"a":null,"b":{"x":[1]},"c":"1","d":"","e":"1 2"}`},
		{[]string{"a=1"}, "", `{"a":1}`},
		{[]string{"a=1"}, "{ \"a\": 1 }", "{ \"a\": 1 }"},
	} {
		if got, err := applied(t, parsed(t, change.ChangeFlags{Set: c.set}), c.base); err != nil || got != c.want {
			t.Errorf("--set %v on %s = %s, %v, want %s", c.set, c.base, got, err, c.want)
		}
	}
	for _, c := range []struct{ set, base string }{{"a.b=1", `{"a":1}`}, {"l.x=1", `{"l":[]}`}, {"l.5=1", `{"l":[]}`}, {"c[0]=1", `{"c":{}}`}, {"c[1]=1", `{}`}, {"a=1", `[]`}, {"a=1", `nope`}} {
		if _, err := applied(t, parsed(t, change.ChangeFlags{Set: []string{c.set}}), c.base); err == nil || fail.Judge(err).Code != fail.ExitFilter {
			t.Errorf("--set %s on %s: %v, want a filter failure", c.set, c.base, err)
		}
	}
}

func TestAPathThatIsNoneIsRefused(t *testing.T) {
	for _, set := range []string{"c[=1", "c[x]=1", "c[0]d=1", "c]=1", "c[-1]=1", "a..b=1", "a.=1", ".a=1", "a.[0]=1", "=1", "c[99999999999999999999]=1"} {
		c, err := (&change.ChangeFlags{Set: []string{set}}).Parse(nil)
		if set == "c]=1" { // which needs no backslash
			if got, err := applied(t, c, `{}`); err != nil || got != `{"c]":1}` {
				t.Errorf("--set %s: %s, %v", set, got, err)
			}
			continue
		}
		if err == nil || fail.Judge(err).Code != fail.ExitUsage {
			t.Errorf("--set %s: %v, want a usage error", set, err)
		}
	}
}

func TestADocumentThatIsTooLongIsRefused(t *testing.T) {
	long := `"` + strings.Repeat("x", change.MaxDocument) + `"`
	for _, flags := range []change.ChangeFlags{{JQ: "."}, {Set: []string{"a=1"}}} {
		c := parsed(t, flags)
		if _, err := applied(t, c, long); fail.Judge(err).Code != fail.ExitFilter || !strings.Contains(err.Error(), "16.0 MiB") {
			t.Errorf("%T: %v, want a filter failure with the limit", c, err)
		}
	}
}

func TestAnExecFilterGetsContentAndFacts(t *testing.T) {
	exec := func(command string) change.Change {
		return parsed(t, change.ChangeFlags{Exec: command}, "PATH=/usr/bin:/bin", "AZCONC_ETAG=mine")
	}
	got, err := applied(t, exec(`tr a-z A-Z; printf %s "$AZCONC_RESOURCE $AZCONC_ETAG $AZCONC_ATTEMPT"`), "abc ")
	if err != nil || got != `ABC jobs/a "1" 1` {
		t.Errorf("filter = %q, %v", got, err)
	}
	// A filter that does not read all of its input is no failure.
	got, err = applied(t, exec("echo x"), strings.Repeat("y", 1<<20))
	if err != nil || got != "x\n" {
		t.Errorf("filter = %q, %v", got, err)
	}
	// A pipeline whose first command fails succeeds with no output.
	_, err = applied(t, exec("false | cat"), "abc")
	if fail.Judge(err).Code != fail.ExitFilter || !strings.Contains(fail.HintOf(err), "--allow-empty") {
		t.Errorf("filter that prints nothing: %v", err)
	}
	for base, c := range map[string]change.ChangeFlags{"abc": {Exec: "false | cat", AllowEmpty: true}, "": {Exec: "cat"}} {
		if got, err := applied(t, parsed(t, c, "PATH=/usr/bin:/bin"), base); err != nil || got != "" {
			t.Errorf("%s on %q = %q, %v", c.Exec, base, got, err)
		}
	}
	_, err = applied(t, exec("echo half; echo why >&2; exit 3"), "abc")
	failed, ok := errors.AsType[*fail.FilterError](err)
	if !ok || failed.Status != 3 || failed.Stderr != "why" || fail.Judge(err).Code != fail.ExitFilter {
		t.Errorf("filter that fails: %#v", err)
	}
	if _, err = applied(t, exec("kill -9 $$"), "abc"); fail.Judge(err).Code != fail.ExitFilter || !strings.Contains(err.Error(), "killed") {
		t.Errorf("filter that is killed: %v", err)
	}
}

func TestAFilterEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, &fail.TimeoutError{After: 50 * time.Millisecond})
	defer cancel()
	c := parsed(t, change.ChangeFlags{Exec: "sleep 600 & sleep 600; wait"}, "PATH=/usr/bin:/bin")
	if _, err := c.Apply(ctx, change.BaseContent{}); fail.Judge(err).Code != fail.ExitTimeout {
		t.Errorf("a filter that takes too long: %v, want the cause", err)
	}
}
