package aztest_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// TestTheJavaScriptSDKWorks makes the ordinary calls of another SDK, signed by its own code.
func TestTheJavaScriptSDKWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it starts Node.js, and this is a short run")
	}
	s := start(t, nil)
	var results map[string]string
	if err := json.Unmarshal(azuritetest.JavaScript(t, s.ConnectionString(), "testdata/flows.mjs"), &results); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if got := results[name]; got != "ok" {
			t.Errorf("%s: %s", name, got)
		}
	}
	calls := map[string]int{}
	for name := range results {
		service, _, _ := strings.Cut(name, ":")
		calls[service]++
	}
	t.Logf("calls: %v", calls)
}
