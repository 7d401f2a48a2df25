package conformance

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated tables into README.md")

const readme = "../../../../pkg/aztest/README.md"

// TestTheArticlesTables generates the article's tables of operations from what the in-memory service and Azurite
// answered, and compares them with the article and with the README of aztest.
func TestTheArticlesTables(t *testing.T) {
	inMemory := rowsOf(t, memoryHarness(t))
	onAzurite := rowsOf(t, azuriteHarness(t))
	differ := map[string]string{} // from the article, and why: nothing does
	leaseDiffers := map[string]string{"Abort Copy Blob": "Azurite looks at the copy id first, and its copies are never pending"}
	for i, says := range article {
		for service, row := range map[string]row{"in memory": inMemory[i], "Azurite": onAzurite[i]} {
			same := row.ETag == says.ETag && row.Conditions == says.Conditions
			if why, known := differ[says.Operation]; same == known {
				t.Errorf("%s, %s: ETag %t, conditions %t; the article says %t, %t (%s)", service, says.Operation, row.ETag, row.Conditions, says.ETag, says.Conditions, why)
			}
		}
		if _, known := leaseDiffers[says.Operation]; known == (inMemory[i].Lease == onAzurite[i].Lease) {
			t.Errorf("%s: a lease is %s in memory and %s on Azurite", says.Operation, inMemory[i].Lease, onAzurite[i].Lease)
		}
	}
	carriedByReadme(t, "blobs and containers", markdown(inMemory))
}

// TestTheArticlesTableOfEntities is the same for entities.
func TestTheArticlesTableOfEntities(t *testing.T) {
	inMemory := entityRows(t, memoryTables(t))
	onAzurite := entityRows(t, azuriteTables(t))
	for i, says := range articleEntities {
		for where, row := range map[string]row{"in memory": inMemory[i], "Azurite": onAzurite[i]} {
			if row.ETag != says.ETag || row.Conditions != says.Conditions {
				t.Errorf("%s, %s: ETag %t, If-Match %t; the article says %t, %t", where, says.Operation, row.ETag, row.Conditions, says.ETag, says.Conditions)
			}
		}
	}
	carriedByReadme(t, "entities", markdownEntities(inMemory))
}

// carriedByReadme holds a generated table against its place in the README.
func carriedByReadme(t *testing.T, name, table string) {
	t.Helper()
	t.Logf("\n%s", table)
	content, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- generated: "+name+" -->\n", "<!-- end -->\n"
	before, rest, found := strings.Cut(string(content), begin)
	now, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("the README has no place for the generated table of %s", name)
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
	t.Errorf("the README's table is not what was answered: go test ./cmd/azconc/internal/conformance -run TestTheArticle -args -update\n%s", table)
}
