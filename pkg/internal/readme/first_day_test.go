package readme

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	firstDay = regexp.MustCompile("(?s)## The first day\n.*?```sh\n(.*?)```")
	mutant   = regexp.MustCompile(`^scripts/mutants "(.*)"`)
	folder   = regexp.MustCompile(` (\./\S+)`)
)

// TestTheFirstDay: what CONTRIBUTING.md proposes to a new maintainer exists. scripts/newcomer runs it.
func TestTheFirstDay(t *testing.T) {
	found := firstDay.FindStringSubmatch(files(t, "CONTRIBUTING.md")[".github/CONTRIBUTING.md"])
	if found == nil {
		t.Fatal("CONTRIBUTING.md has no first day")
	}
	planted := ""
	for _, text := range files(t, ".txt") {
		planted += text
	}
	lines := strings.Split(strings.TrimSpace(found[1]), "\n")
	if len(lines) < 5 {
		t.Errorf("it has %d lines", len(lines))
	}
	for _, line := range lines[1:] { // the first makes the clone
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(strings.Fields(line)[0]))); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if of := folder.FindStringSubmatch(line); of != nil {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(of[1]))); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
		if name := mutant.FindStringSubmatch(line); name != nil && !strings.Contains(planted, "\n# "+name[1]+"\n") {
			t.Errorf("%s: there is no such mutant", line)
		}
	}
}
