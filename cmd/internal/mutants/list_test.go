package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryMutantCanBePlanted keeps the list in step with the code, without the time that it takes to run it.
func TestEveryMutantCanBePlanted(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	names := map[string]bool{}
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("two mutants are named %q", m.name)
		}
		names[m.name] = true
		source, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("%s: the text to replace is %d times in %s, want once", m.name, n, m.file)
		}
		if info, err := os.Stat(filepath.Join(root, m.pkg)); err != nil || !info.IsDir() {
			t.Errorf("%s: no package %s", m.name, m.pkg)
		}
		if _, err := regexp.Compile(m.run); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
