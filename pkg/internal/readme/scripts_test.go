package readme

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEverythingIsTested: what scripts/test leaves out by default, and what it shortens, is run with --all.
func TestEverythingIsTested(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	list := exec.Command("scripts/test", "--list")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skipf("SKIP: scripts/test cannot be run here: %v", err)
	}
	var modules, shortened, unraced []string
	for line := range strings.Lines(string(out)) {
		switch word := strings.Fields(line); word[0] {
		case "daily", "rare":
			modules = append(modules, path.Clean(strings.TrimSuffix(word[1], "/...")))
		case "shortened":
			shortened = append(shortened, word[1])
		case "unraced":
			unraced = append(unraced, word[1])
		}
	}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return err
		}
		name, err := filepath.Rel(root, file)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.Name() == "go.mod" && path.Dir(name) != "cmd/azconc/internal/release": // which --all tests by itself
			if !slices.Contains(modules, path.Dir(name)) {
				t.Errorf("scripts/test does not test the module in %s", path.Dir(name))
			}
		case strings.HasSuffix(name, "_test.go") && path.Dir(name) != "pkg/aztest/explore": // of which --all runs all tests
			if asks(t, file) && !slices.Contains(shortened, name) {
				t.Errorf("%s asks whether the run is short, and scripts/test --all does not run it in full", name)
			}
			if leavesOutRaces(t, file) && !strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(name, "pkg/adapters/") && !slices.Contains(unraced, name) {
				t.Errorf("%s is not for the race detector, and scripts/test --all runs it with that alone", name)
			}
		}
		return nil
	})
	if err != nil || len(modules) < 2 || len(shortened) == 0 {
		t.Errorf("%d modules, %d files, %v", len(modules), len(shortened), err)
	}
}

// leavesOutRaces reports whether a file with tests is built without the race detector only.
func leavesOutRaces(t *testing.T, file string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	constraint := regexp.MustCompile(`(?m)^//go:build .*!race`)
	return constraint.Match(text) && strings.Contains(string(text), "\nfunc Test")
}

// asks reports whether a function of a file, other than a benchmark, calls testing.Short, or outages.Each or emulated, which call it.
func asks(t *testing.T, file string) (found bool) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return false
	}
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); !ok || strings.HasPrefix(fn.Name.Name, "Benchmark") || fn.Name.Name == "emulated" {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok {
					found = found || x.Name == "testing" && n.Sel.Name == "Short" || x.Name == "outages" && n.Sel.Name == "Each"
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok {
					found = found || f.Name == "emulated"
				}
			}
			return !found
		})
	}
	return found
}
