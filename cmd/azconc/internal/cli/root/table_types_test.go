package root

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/table"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
)

// every type there is, as it is stored
func everyType() tables.Properties {
	return tables.Properties{
		"s": {Type: tables.EDMString, Value: "01"}, "b": {Type: tables.EDMBoolean, Value: "true"},
		"i": {Type: tables.EDMInt32, Value: "5"}, "l": {Type: tables.EDMInt64, Value: "9007199254740993"},
		"d": {Type: tables.EDMDouble, Value: "1.5"}, "w": {Type: tables.EDMDouble, Value: "3.0"},
		"t": {Type: tables.EDMDateTime, Value: "2026-01-31T12:00:00Z"},
		"g": {Type: tables.EDMGUID, Value: "00000000-0000-4000-8000-00000000000a"}, "x": {Type: tables.EDMBinary, Value: "AAE="},
	}
}

func entityDocument(t *testing.T, p tables.Properties) string {
	t.Helper()
	data, err := table.EntityText(p, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tableWith is a service with the entity jobs/eu/17.
func tableWith(t *testing.T, p tables.Properties) *aztest.Service {
	t.Helper()
	s := aztest.New(nil)
	if r := runOn(t.Context(), s, nil, nil, "table", "create", "jobs"); r.code != 0 {
		t.Fatal(r)
	}
	stdin := func(streams *cli.Streams) { streams.In = strings.NewReader(entityDocument(t, p)) }
	if r := runOn(t.Context(), s, stdin, nil, "table", "insert", "jobs/eu/17", "--file", "-"); r.code != 0 {
		t.Fatal(r)
	}
	return s
}

func stored(t *testing.T, s *aztest.Service) tables.Properties {
	t.Helper()
	r := runOn(t.Context(), s, nil, nil, "table", "get", "jobs/eu/17")
	p, err := table.ParseProperties([]byte(r.out))
	if err != nil {
		t.Fatal(err, r)
	}
	return p
}

func TestAPropertyKeepsItsType(t *testing.T) {
	for _, c := range []struct {
		args []string
		want map[string]tables.Property
	}{
		{[]string{"--jq", ".d += 0.5"}, map[string]tables.Property{"d": {Type: tables.EDMDouble, Value: "2.0"}}},
		{[]string{"--set", "d=2"}, map[string]tables.Property{"d": {Type: tables.EDMDouble, Value: "2.0"}}},
		{[]string{"--exec", `sed 's/"d": 1.5/"d": 2/'`}, map[string]tables.Property{"d": {Type: tables.EDMDouble, Value: "2.0"}}},
		{[]string{"--jq", ".w += 1"}, map[string]tables.Property{"w": {Type: tables.EDMDouble, Value: "4.0"}}},
		{[]string{"--jq", ".l += 1"}, map[string]tables.Property{"l": {Type: tables.EDMInt64, Value: "9007199254740994"}}},
		{[]string{"--jq", `.l = "7"`}, map[string]tables.Property{"l": {Type: tables.EDMInt64, Value: "7"}}},
		{[]string{"--set", "l=7"}, map[string]tables.Property{"l": {Type: tables.EDMInt64, Value: "7"}}},
		{[]string{"--jq", `del(.["l@odata.type"]) | .l = 7`}, map[string]tables.Property{"l": {Type: tables.EDMInt64, Value: "7"}}},
		{[]string{"--set", "s=02", "--set", "t=2026-02-01T00:00:00Z"}, map[string]tables.Property{
			"s": {Type: tables.EDMString, Value: "02"}, "t": {Type: tables.EDMDateTime, Value: "2026-02-01T00:00:00Z"},
		}},
		{[]string{"--set", "s=7", "--set", "x=AAI="}, map[string]tables.Property{
			"s": {Type: tables.EDMString, Value: "7"}, "x": {Type: tables.EDMBinary, Value: "AAI="},
		}},
		// A value that is not of the type, a new property, and a type that is named.
		{[]string{"--jq", ".i += 0.5"}, map[string]tables.Property{"i": {Type: tables.EDMDouble, Value: "5.5"}}},
		{[]string{"--jq", ".i = 4294967296"}, map[string]tables.Property{"i": {Type: tables.EDMInt64, Value: "4294967296"}}},
		{[]string{"--jq", `.s = 7 | .i = "x"`}, map[string]tables.Property{
			"s": {Type: tables.EDMInt32, Value: "7"}, "i": {Type: tables.EDMString, Value: "x"},
		}},
		{[]string{"--set", "new=1"}, map[string]tables.Property{"new": {Type: tables.EDMInt32, Value: "1"}}},
		{[]string{"--set", "d@odata.type=Edm.Int32", "--set", "d=2"}, map[string]tables.Property{"d": {Type: tables.EDMInt32, Value: "2"}}},
		{[]string{"--jq", `.["l@odata.type"] = "Edm.Double" | .l = 2`}, map[string]tables.Property{"l": {Type: tables.EDMDouble, Value: "2.0"}}},
		{[]string{"--set", "i@odata.type=Edm.Int64", "--set", "i=6"}, map[string]tables.Property{"i": {Type: tables.EDMInt64, Value: "6"}}},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			s := tableWith(t, everyType())
			if r := runOn(t.Context(), s, nil, nil, append([]string{"table", "update", "jobs/eu/17"}, c.args...)...); r.code != 0 {
				t.Fatal(r)
			}
			want := everyType()
			for name, p := range c.want {
				want[name] = p
			}
			if diff := cmp.Diff(want, stored(t, s)); diff != "" {
				t.Errorf("update (-want +got):\n%s", diff)
			}
			if c.args[0] != "--set" {
				return
			}
			for _, verb := range [][]string{{"merge", "jobs/eu/17", "--if-match", "*"}, {"upsert", "jobs/eu/17", "--merge"}} {
				s := tableWith(t, everyType())
				if r := runOn(t.Context(), s, nil, nil, append(append([]string{"table"}, verb...), c.args...)...); r.code != 0 {
					t.Fatal(r)
				}
				if diff := cmp.Diff(want, stored(t, s)); diff != "" {
					t.Errorf("%v (-want +got):\n%s", verb, diff)
				}
			}
		})
	}
}

func TestAnUpdateThatChangesNothingWritesNothing(t *testing.T) {
	s := tableWith(t, everyType())
	for _, args := range [][]string{{"--jq", "."}, {"--exec", "cat"}, {"--jq", ".w = 3"}, {"--jq", ".l += 0"}, {"--set", "d=1.50", "--set", "s=01"}} {
		if v := runOn(t.Context(), s, nil, nil, append([]string{"table", "update", "jobs/eu/17", "-o", "json"}, args...)...).json(t); v["outcome"] != "unchanged" || v["requests"] != 1.0 {
			t.Errorf("%v: %v", args, v)
		}
	}
}

func TestAValueThatIsNotOfItsTypeIsRefused(t *testing.T) {
	s := tableWith(t, everyType())
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"update", "jobs/eu/17", "--set", "l=many"}, fail.ExitFilter, `"many" is not a value of type Edm.Int64`},
		{[]string{"update", "jobs/eu/17", "--jq", ".g = \"x\""}, fail.ExitFilter, `"x" is not a value of type Edm.Guid`},
		{[]string{"merge", "jobs/eu/17", "--if-match", "*", "--set", `d={"a":1}`}, fail.ExitUsage, "a property holds a single value"},
		{[]string{"insert", "jobs/eu/18", "--set", "a.b=1"}, fail.ExitUsage, "a property's name cannot have '.'"},
		{[]string{"insert", "jobs/eu/18", "--set", "a-b=1"}, fail.ExitUsage, "a property's name cannot have '-'"},
		{[]string{"insert", "jobs/eu/18", "--set", "d@odata.type=Edm.Odd", "--set", "d=1"}, fail.ExitUsage, `1 is not a value of type Edm.Odd`},
	} {
		r := runOn(t.Context(), s, nil, nil, append([]string{"table"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) || !strings.Contains(r.stderr, "azconc: hint: ") {
			t.Errorf("%v: exit %d, %s, want %d, %q and a hint", c.args, r.code, r.stderr, c.code, c.want)
		}
	}
}

func TestAMergeKeepsTypes(t *testing.T) {
	s := tableWith(t, everyType())
	for _, c := range []struct {
		set      []string
		requests float64
	}{
		{[]string{"--set", "d=2"}, 2},
		{[]string{"--set", "b=false"}, 2},
		{[]string{"--set", "d=2", "--set", "d@odata.type=Edm.Double"}, 2},
	} {
		v := runOn(t.Context(), s, nil, nil, append([]string{"table", "merge", "jobs/eu/17", "--if-match", "*", "-o", "json"}, c.set...)...).json(t)
		if v["outcome"] != "merged" || v["requests"] != c.requests {
			t.Errorf("%v: %v, want %v requests", c.set, v, c.requests)
		}
	}
	if r := runOn(t.Context(), s, nil, nil, "table", "merge", "jobs/eu/none", "--if-match", "*", "--set", "d=2"); r.code != fail.ExitNotFound {
		t.Errorf("an entity that does not exist: %+v", r)
	}
}

func TestAQueryKeepsTypes(t *testing.T) {
	s := tableWith(t, everyType())
	r := runOn(t.Context(), s, nil, nil, "table", "query", "jobs")
	p, err := table.ParseProperties([]byte(r.out))
	if err != nil {
		t.Fatal(err, r)
	}
	if diff := cmp.Diff(everyType(), p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
