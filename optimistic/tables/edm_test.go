package tables

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/go-cmp/cmp"
)

func TestGoValuesHaveTypes(t *testing.T) {
	small := int64(5)
	for _, tt := range []struct {
		value any
		want  Property
	}{
		{true, Property{EDMBoolean, "true"}},
		{"it's <b>", Property{EDMString, "it's <b>"}},
		{"2024-01-01T00:00:00Z", Property{EDMString, "2024-01-01T00:00:00Z"}},
		{int32(-5), Property{EDMInt32, "-5"}},
		{uint16(5), Property{EDMInt32, "5"}},
		{5, Property{EDMInt32, "5"}},
		{3_000_000_000, Property{EDMInt64, "3000000000"}},
		{small, Property{EDMInt64, "5"}},
		{&small, Property{EDMInt64, "5"}},
		{int64(math.MaxInt64), Property{EDMInt64, "9223372036854775807"}},
		{uint32(5), Property{EDMInt64, "5"}},
		{3.0, Property{EDMDouble, "3.0"}},
		{1e300, Property{EDMDouble, "1e+300"}},
		{float32(0.1), Property{EDMDouble, "0.1"}},
		{math.NaN(), Property{EDMDouble, "NaN"}},
		{math.Inf(-1), Property{EDMDouble, "-Infinity"}},
		{[]byte{0, 1, 2}, Property{EDMBinary, "AAEC"}},
		{time.Date(2024, 2, 29, 13, 0, 0, 123456789, time.FixedZone("", 3600)), Property{EDMDateTime, "2024-02-29T12:00:00.1234567Z"}},
		{aztables.EDMGUID("c9da6455-213d-42c9-9a79-3e9149a57833"), Property{EDMGUID, "c9da6455-213d-42c9-9a79-3e9149a57833"}},
		{aztables.EDMInt64(5), Property{EDMInt64, "5"}},
		{json.Number("5"), Property{EDMInt32, "5"}},
		{json.Number("5.0"), Property{EDMDouble, "5.0"}},
		{Property{EDMInt64, "7"}, Property{EDMInt64, "7"}},
	} {
		if got, err := PropertyOf(tt.value); err != nil || got != tt.want {
			t.Errorf("PropertyOf(%v) = %v, %v; want %v", tt.value, got, err, tt.want)
		}
	}
	for _, bad := range []any{
		nil, (*int)(nil), map[string]int{"a": 1}, []string{"a"}, struct{}{}, "\xff", time.Time{}, uint64(math.MaxUint64), aztables.EDMGUID("zz"), Property{EDMInt32, "x"}, Property{"Edm.Time", "1"},
	} {
		if got, err := PropertyOf(bad); err == nil {
			t.Errorf("PropertyOf(%v) = %v, want an error", bad, got)
		}
	}
}

func TestPropertiesGoBackToGo(t *testing.T) {
	for _, want := range []any{
		true, "x", int32(5), int64(math.MinInt64), 3.0, math.Inf(1), []byte{1}, time.Date(2024, 1, 1, 0, 0, 0, 100, time.UTC),
	} {
		p, err := PropertyOf(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Any(); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%v became %v (%T), %v", want, got, got, err)
		}
	}
}

const everyType = `{"b":true,"d":2.5,"i":-5,"id@odata.type":"Edm.Guid","id":"C9DA6455-213d-42c9-9a79-3e9149a57833",` +
	`"long@odata.type":"Edm.Int64","long":"9007199254740993","nan@odata.type":"Edm.Double","nan":"NaN",` +
	`"raw@odata.type":"Edm.Binary","raw":"AAECAw==","s":"it's <b>","seen@odata.type":"Edm.DateTime","seen":"2024-02-29T12:00:00.1234567Z",` +
	`"tiny":1E-7,"whole@odata.type":"Edm.Double","whole":3.0}`

func TestPropertiesSurviveJSONExactly(t *testing.T) {
	var p Properties
	if err := json.Unmarshal([]byte(everyType), &p); err != nil {
		t.Fatal(err)
	}
	data, err := p.MarshalJSON() // json.Marshal would escape what need not be escaped
	if err != nil || string(data) != everyType {
		t.Errorf("%s, %v; want\n%s", data, err, everyType)
	}
}

// TestTypesSurviveAToolThatKnowsOnlyFloats: jq and JavaScript write 3.0 as 3.
func TestTypesSurviveAToolThatKnowsOnlyFloats(t *testing.T) {
	var p, q Properties
	if err := json.Unmarshal([]byte(everyType), &p); err != nil {
		t.Fatal(err)
	}
	p["mega"] = Property{EDMDouble, "1E+6"}
	var loose map[string]any
	data, _ := json.Marshal(p)
	if err := json.Unmarshal(data, &loose); err != nil {
		t.Fatal(err)
	}
	if data, _ = json.Marshal(loose); strings.Contains(string(data), "3.0") {
		t.Fatal("the tool is too careful for this test")
	}
	if err := json.Unmarshal(data, &q); err != nil {
		t.Fatal(err)
	}
	p["tiny"], p["mega"] = Property{EDMDouble, "1e-7"}, Property{EDMDouble, "1e+06"} // the same numbers
	if diff := cmp.Diff(p, q); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestInvalidPropertiesAreRefused(t *testing.T) {
	for _, bad := range []string{
		`{"x":{}}`, `{"x":[1]}`, `{"x":1.5,"x@odata.type":"Edm.Int64"}`, `{"x":"1","x@odata.type":"Edm.Int32"}`, `{"x":5,"x@odata.type":"Edm.String"}`,
		`{"x":"a","x@odata.type":"Edm.Guid"}`, `{"x":"1500-01-01T00:00:00Z","x@odata.type":"Edm.DateTime"}`, `{"x":1e999}`, `{"x":"*","x@odata.type":"Edm.Binary"}`,
		`{"x":99999999999999999999}`, `[]`, `{"x":1`,
	} {
		var p Properties
		if err := json.Unmarshal([]byte(bad), &p); err == nil {
			t.Errorf("%s is read as %v", bad, p)
		}
	}
}

func TestWhatFollowsAnEntityIsRefused(t *testing.T) {
	for _, body := range []string{`{"x":1}{"x":2}`, `{"x":1}<html>`, `{"x":1}}`} {
		if e, err := parseEntity([]byte(body)); err == nil {
			t.Errorf("%s is read as %v", body, e.properties)
		}
	}
	if _, err := parseEntity([]byte("{\"x\":1}\r\n")); err != nil {
		t.Error(err)
	}
}

func FuzzPropertiesJSON(f *testing.F) {
	f.Add([]byte(everyType))
	f.Add([]byte(`{"a":"b","c":-0.0,"e@odata.type":"Edm.Int64","e":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p, q Properties
		if json.Unmarshal(data, &p) != nil {
			return
		}
		once, err := p.MarshalJSON()
		if err != nil {
			t.Fatalf("%s was read as %v, which cannot be written: %v", data, p, err)
		}
		if err := json.Unmarshal(once, &q); err != nil || !cmp.Equal(p, q) {
			t.Errorf("%s: %v became %v, %v", once, p, q, err)
		}
	})
}
