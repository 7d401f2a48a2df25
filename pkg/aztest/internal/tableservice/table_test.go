package tableservice

import (
	"encoding/json"
	"testing"

	"github.com/azconc/azconc/pkg/aztest/internal/edm"
)

// TestBareNumbersLoseTheirLastDigits: an integer without an annotation that does not fit 32 bits is a Double to the
// service, which is why an Int64 has to be sent as a text.
func TestBareNumbersLoseTheirLastDigits(t *testing.T) {
	for text, want := range map[string]edm.Value{
		"3": {Type: edm.Int32, Text: "3"}, "3.0": {Type: edm.Double, Text: "3.0"}, "3e0": {Type: edm.Double, Text: "3.0"}, "-0.0": {Type: edm.Double, Text: "-0.0"},
		"9007199254740993": {Type: edm.Double, Text: "9.007199254740992e+15"}, `"3"`: {Type: edm.String, Text: "3"}, "true": {Type: edm.Boolean, Text: "true"},
	} {
		if got, _, bad := parseProperty("x", json.RawMessage(text), ""); bad != nil || got != want {
			t.Errorf("%s is read as %v, want %v", text, got, want)
		}
	}
	for text, annotation := range map[string]edm.Type{
		`"x"`: edm.Int64, "1.5": edm.Int64, "3000000000": edm.Int32, `"inf"`: edm.Double, "{}": "", "[1]": "", `"a"`: "Edm.Duration",
		`"1600-12-31T00:00:00Z"`: edm.DateTime, `"="`: edm.Binary, "5": edm.String,
	} {
		if got, _, bad := parseProperty("x", json.RawMessage(text), string(annotation)); bad == nil {
			t.Errorf("%s as %s is read as %v", text, annotation, got)
		}
	}
}
