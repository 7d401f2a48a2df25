package edm

import (
	"strings"
	"testing"
)

// FuzzFilter parses any text as a filter. Parentheses must change nothing, and not must negate every result.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{"PartitionKey eq 'p'", "n gt 5 and not (b or n le 5L)", "t ge datetime'2020-01-01T00:00:00Z'", "x eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
		"bin eq X'00ff'", "a eq 'it''s'", "d lt -2.5e3", "true"} {
		f.Add(seed)
	}
	values := map[string]Value{"PartitionKey": {Type: String, Text: "p"}, "n": {Type: Int32, Text: "5"}, "b": {Type: Boolean, Text: "true"}, "d": {Type: Double, Text: "1.5"}}
	entities := []Row{
		func(string) (Value, bool) { return Value{}, false },
		func(name string) (Value, bool) { v, ok := values[name]; return v, ok },
	}
	f.Fuzz(func(t *testing.T, text string) {
		matches, err := ParseFilter(text)
		if err != nil || strings.TrimSpace(text) == "" {
			return
		}
		same, err := ParseFilter("(" + text + ")")
		opposite, bad := ParseFilter("not (" + text + ")")
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
