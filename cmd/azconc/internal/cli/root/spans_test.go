package root

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
)

// ofOneOperation are verbs that had a span for the command and for each try of a request, and none in between.
const ofOneOperation = `container create other
container delete other
container acl show jobs
blob block put jobs/big --id a --file -
blob block commit jobs/big a
blob block list jobs/b
blob page put jobs/p --offset 0 --file -
blob copy jobs/a jobs/c
blob snapshot jobs/a
blob delete jobs/c
blob lease acquire jobs/a
blob lease break jobs/a
counter add jobs/visits 1
counter get jobs/visits
counter delete jobs/visits
queue receive orders
queue clear orders
queue metadata show orders
queue delete orders
table get jobs/eu/1
table merge jobs/eu/1 --set n=6 --if-match *
table upsert jobs/eu/4 --set n=6
table delete-entity jobs/eu/1 --if-match *
table delete jobs
file get reports/a.csv --file -
file handles list reports/a.csv
file delete reports/a.csv
share create more
share delete more
lock list jobs
once list jobs
lock gc jobs
`

// TestAVerbOfOneOperationHasItsSpan: each request is below one of the REST reference, that below an operation of the library, and that below
// the command.
func TestAVerbOfOneOperationHasItsSpan(t *testing.T) {
	s := aztest.New(nil)
	c := newCollector(t, http.StatusOK)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	env := append(slices.Clone(allServices), "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
	for line := range strings.Lines(somethingOfEach + ofOneOperation) {
		clear(c.received)
		in := `{"n":1}`
		if strings.Contains(line, "page put") {
			in = strings.Repeat("x", 512)
		}
		r := runOn(t.Context(), s, func(s *cli.Streams) { s.In = strings.NewReader(in) }, env, strings.Fields(line)...)
		if r.code != 0 {
			t.Errorf("azconc %s: %+v", line, r)
		}
		byID := map[string]*tracepb.Span{}
		for _, span := range c.spans(t) {
			byID[string(span.SpanId)] = span
		}
		for _, span := range byID {
			var above []string
			for at := span; at != nil; at = byID[string(at.ParentSpanId)] {
				above = append(above, at.Name)
			}
			if strings.HasPrefix(span.Name, "HTTP ") && len(above) < 4 {
				t.Errorf("azconc %s: %s", strings.TrimSpace(line), strings.Join(above, " is below "))
			}
		}
	}
}
