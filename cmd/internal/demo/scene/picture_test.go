package scene

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/pkg/aztest"
)

// The picture of the first page is the one that the scenes give.
func TestThePictureIsTheOneOfTheScenes(t *testing.T) {
	results, err := PlayAll(t.Context(), inMemory(aztest.New(nil)), "lost-answers", "lost-sends")
	if err != nil {
		t.Fatal(err)
	}
	var drawn bytes.Buffer
	if err := Picture(&drawn, results); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "..", "..", ".github", "docs", "demo.svg")
	if *update {
		if err := os.WriteFile(file, drawn.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(file)
	if diff := cmp.Diff(string(committed), drawn.String()); err != nil || diff != "" {
		t.Errorf("%v; scripts/demo -picture .github/docs/demo.svg lost-answers lost-sends draws it (-committed +drawn):\n%s", err, diff)
	}
}
