package root

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
)

// A line that expects the very value that was inserted failed, as the service spells some values its own way.
func TestAnExpectedValueMayBeSpelledInAnyWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		do := func(stdin string, args string) ran {
			return runOn(t.Context(), s, func(s *cli.Streams) { s.In = strings.NewReader(stdin) }, nil, strings.Fields(args)...)
		}
		do("", "table create jobs")
		const entity = `{"d":1e5,"e":1.50,"n":"NaN","n@odata.type":"Edm.Double","i":5,"b":true,"s":"x",
			"t":"2026-01-31T12:00:05+01:00","t@odata.type":"Edm.DateTime","g":"1F812371-A41D-49E6-B123-F4B542E851C5","g@odata.type":"Edm.Guid",
			"l":"12","l@odata.type":"Edm.Int64","y":"AAE=","y@odata.type":"Edm.Binary"}`
		if r := do(entity, "table insert jobs/eu/17 --file -"); r.code != 0 {
			t.Fatal(r)
		}
		line := func(entity string) ran {
			return do(`{"op":"expect","row":"17","entity":`+entity+`}{"op":"put","row":"18","entity":{}}`, "table transact jobs/eu --file -")
		}
		for _, same := range []string{
			entity, `{"d":100000.0}`, `{"e":15e-1}`, `{"t":"2026-01-31T11:00:05.000Z","t@odata.type":"Edm.DateTime"}`,
			`{"g":"1f812371-a41d-49e6-b123-f4b542e851c5","g@odata.type":"Edm.Guid"}`,
		} {
			if r := line(same); r.code != 0 {
				t.Errorf("%s: %+v", same, r)
			}
		}
		for _, other := range []string{
			`{"d":1e6}`, `{"t":"2026-01-31T12:00:05Z","t@odata.type":"Edm.DateTime"}`, `{"s":"X"}`, `{"d":100000}`, `{"y":"AAI=","y@odata.type":"Edm.Binary"}`,
			`{"g":"1f812371-a41d-49e6-b123-f4b542e851c6","g@odata.type":"Edm.Guid"}`,
		} {
			if r := line(other); r.code != 4 {
				t.Errorf("%s: %+v, want 4", other, r)
			}
		}
	})
}
