package aztest_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/azconc/azconc/pkg/aztest/conformance"
)

var update = flag.Bool("update", false, "write the generated tables into the README")

const readme = "../../README.md"

// TestTheArticlesTables generates the article's tables of operations from what the in-memory service and Azurite
// answered, holds them against what the article says, and against the README, which carries them.
func TestTheArticlesTables(t *testing.T) {
	inMemory := conformance.Rows(t, memoryHarness())
	onAzurite := conformance.Rows(t, azuriteHarness(t))
	differ := map[string]string{} // from the article, and why: nothing does
	leaseDiffers := map[string]string{"Abort Copy Blob": "Azurite looks at the copy id first, and its copies are never pending"}
	for i, says := range conformance.Article {
		for service, row := range map[string]conformance.Row{"in memory": inMemory[i], "Azurite": onAzurite[i]} {
			same := row.ETag == says.ETag && row.Conditions == says.Conditions
			if why, known := differ[says.Operation]; same == known {
				t.Errorf("%s, %s: ETag %t, conditions %t; the article says %t, %t (%s)", service, says.Operation, row.ETag, row.Conditions, says.ETag, says.Conditions, why)
			}
		}
		if _, known := leaseDiffers[says.Operation]; known == (inMemory[i].Lease == onAzurite[i].Lease) {
			t.Errorf("%s: a lease is %s in memory and %s on Azurite", says.Operation, inMemory[i].Lease, onAzurite[i].Lease)
		}
	}
	table := conformance.Markdown(inMemory)
	t.Logf("\n%s", table)
	content, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- generated: blobs and containers -->\n", "<!-- end -->\n"
	before, rest, found := strings.Cut(string(content), begin)
	now, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the README has no place for the generated table")
	}
	if now == table {
		return
	}
	if *update {
		if err := os.WriteFile(readme, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the README's table is not what was answered: go test ./pkg/aztest -run TestTheArticlesTables -args -update\n%s", table)
}
