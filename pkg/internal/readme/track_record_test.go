package readme

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	named     = regexp.MustCompile("`(Test\\w+|\\w+\\.txtar)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)
	recordRow = regexp.MustCompile(`(?m)^\| [^|]+ \| [^|]+ \| ([^|]+) \|$`)
)

// untested returns what the rows of text name and known does not have, and how many rows have a test.
func untested(text string, known map[string]bool) (missing []string, rows int) {
	for _, row := range recordRow.FindAllStringSubmatch(text, -1) {
		tests := named.FindAllStringSubmatch(row[1], -1)
		switch {
		case row[1] == "test": // the heading
			continue
		case len(tests) == 0:
			missing = append(missing, row[0])
		}
		rows++
		for _, test := range tests {
			if !known[test[1]] {
				missing = append(missing, test[1])
			}
		}
	}
	return missing, rows
}

func TestTheTrackRecordNamesTestsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, text := range files(t, "_test.go") {
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			known[m[1]] = true
		}
	}
	for name := range maps.Keys(files(t, ".txtar")) {
		known[path.Base(name)] = true
	}
	data, err := os.ReadFile(filepath.Join(root, ".github", "TRACK_RECORD.md"))
	if err != nil {
		t.Fatal(err)
	}
	missing, rows := untested(string(data), known)
	for _, m := range missing {
		t.Errorf("TRACK_RECORD.md: there is no test %s", m)
	}
	if lines := strings.Count(string(data), "\n| ") - strings.Count(string(data), "\n| fault |"); rows < 60 || rows != lines {
		t.Errorf("%d rows were read of %d, want 60 at least", rows, lines)
	}
	if missing, _ := untested("| a | b | `TestNobodyWroteThis` |\n| a | b | none |\n", known); !slices.Equal(missing, []string{"TestNobodyWroteThis", "| a | b | none |"}) {
		t.Errorf("rows without a test were not noticed: %q", missing)
	}
}
