package aztest_test

import (
	"strings"
	"testing"

	"github.com/azconc/azconc/pkg/aztest/internal/edm"
)

func TestFiltersThatAreNoFiltersAreRefused(t *testing.T) {
	for _, filter := range []string{
		"n eq", "eq 1", "(n eq 1", "n eq 1)", "n eq 'open", "n eq 1 and", "not", "n eq datetime'yesterday'", "n eq guid'1'",
		"n eq X'0'", "n eq zz'1'", "n eq 1 n", "n == 1", "n eq 1 or or n eq 2",
	} {
		if _, err := edm.ParseFilter(filter); err == nil {
			t.Errorf("%q is accepted", filter)
		}
	}
}

func TestFiltersDecideAsODataSays(t *testing.T) {
	values := map[string]edm.Value{
		"s": {Type: edm.String, Text: "o'b"}, "i": {Type: edm.Int32, Text: "10"}, "l": {Type: edm.Int64, Text: "10"}, "d": {Type: edm.Double, Text: "10.0"}, "t": {Type: edm.Boolean, Text: "true"},
		"f": {Type: edm.Boolean, Text: "false"}, "at": {Type: edm.DateTime, Text: "2024-01-01T00:00:00.5Z"}, "raw": {Type: edm.Binary, Text: "AAEC"},
		"id": {Type: edm.GUID, Text: "c9da6455-213d-42c9-9a79-3e9149a57833"}, "and1": {Type: edm.Int32, Text: "1"},
	}
	lookUp := func(name string) (edm.Value, bool) { p, ok := values[name]; return p, ok }
	for filter, want := range map[string]bool{
		"":                      true,
		"s eq 'o''b'":           true,
		"s gt 'o'":              true,
		"i eq 10":               true,
		"i gt 9":                true, // not as text
		"i eq 10L":              false,
		"l eq 10":               false,
		"l ge -5L":              true,
		"d eq 10.0":             true,
		"d gt 9.5e0":            true,
		"t":                     true,
		"f":                     false,
		"not f":                 true,
		"not not t":             true,
		"i":                     false, // not a Boolean
		"10 lt i":               false,
		"9 lt i":                true,
		"missing eq 1":          false,
		"missing ne 1":          false,
		"and1 eq 1":             true, // a name that begins like an operator
		"raw eq X'000102'":      true,
		"raw eq binary'000103'": false,
		"at eq datetime'2024-01-01T01:00:00.5+01:00'":      true,
		"at lt datetime'2024-01-01T00:00:01Z'":             true,
		"id eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'": true,
		"t or f and f":    true, // and binds closer
		"(t or f) and f":  false,
		"not t or t":      true,
		"not (t or t)":    false,
		"i ge 3000000000": false, // too large for 32 bits: an Int64
	} {
		holds, err := edm.ParseFilter(filter)
		if err != nil {
			t.Errorf("%q: %v", filter, err)
		} else if got := holds(lookUp); got != want {
			t.Errorf("%q is %t, want %t", filter, got, want)
		}
	}
}

// FuzzFilter parses any text as a filter. Parentheses must change nothing, and not must negate every result.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{"PartitionKey eq 'p'", "n gt 5 and not (b or n le 5L)", "t ge datetime'2020-01-01T00:00:00Z'", "x eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
		"bin eq X'00ff'", "a eq 'it''s'", "d lt -2.5e3", "true"} {
		f.Add(seed)
	}
	values := map[string]edm.Value{"PartitionKey": {Type: edm.String, Text: "p"}, "n": {Type: edm.Int32, Text: "5"}, "b": {Type: edm.Boolean, Text: "true"}, "d": {Type: edm.Double, Text: "1.5"}}
	entities := []edm.Row{
		func(string) (edm.Value, bool) { return edm.Value{}, false },
		func(name string) (edm.Value, bool) { v, ok := values[name]; return v, ok },
	}
	f.Fuzz(func(t *testing.T, text string) {
		matches, err := edm.ParseFilter(text)
		if err != nil || strings.TrimSpace(text) == "" {
			return
		}
		same, err := edm.ParseFilter("(" + text + ")")
		opposite, bad := edm.ParseFilter("not (" + text + ")")
		if err != nil || bad != nil {
			t.Fatalf("%q is a filter, in parentheses it is none: %v, %v", text, err, bad)
		}
		for i, one := range entities {
			if matches(one) != same(one) || matches(one) == opposite(one) {
				t.Errorf("entity %d: %q says %t, in parentheses %t, not %t", i, text, matches(one), same(one), opposite(one))
			}
		}
	})
}
