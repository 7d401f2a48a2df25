package api

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// promised are the packages whose exported names stay within a major version, with all below them: CONTRIBUTING, "Versions".
var promised = []string{"optimistic", "pessimistic", "idempotent", "pkg/azerr", "pkg/fence", "pkg/lease", "pkg/observe", "pkg/retry", "pkg/telemetry"}

// noAPI are packages that lie in pkg because several packages share them, and Go has no better place: the top level is fixed, and what
// is below pkg/internal cannot be imported from beside pkg.
var noAPI = []string{"clock", "ptr", "resource", "wire"}

var mention = regexp.MustCompile(`\b(?:` + strings.Join(noAPI, "|") + `)\.[A-Z]\w*`)

// mentioned returns what an API, as Of returns it, says of packages that are none. Comments do not count.
func mentioned(api string) (found []string) {
	for line := range strings.Lines(api) {
		code, _, _ := strings.Cut(line, "//")
		found = append(found, mention.FindAllString(code, -1)...)
	}
	return found
}

// TestNoPromiseIsMadeOfWhatIsNoAPI: a promised package whose signatures use a type of another freezes that too.
func TestNoPromiseIsMadeOfWhatIsNoAPI(t *testing.T) {
	if got := mentioned("func F(w wire.Wire) *ptr.X // resource.Path\ntype T struct {\n    // as ptr.Y\n    A int\n}\n"); len(got) != 2 {
		t.Errorf("of two mentions %q is found", got)
	}
	seen := 0
	for _, path := range promised {
		files, err := filepath.Glob(filepath.Join("testdata", strings.ReplaceAll(path, "/", ".")+"*.txt"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no file in testdata: %v", path, err)
		}
		for _, file := range files {
			api, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range mentioned(string(api)) {
				t.Errorf("%s mentions %s, which is no API", file, one)
			}
			seen++
		}
	}
	if seen < 15 {
		t.Errorf("only %d files are read", seen)
	}
	for _, name := range noAPI {
		packages, err := filepath.Glob(filepath.Join("..", "..", name, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		says := false
		for _, file := range packages {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
			says = says || err == nil && f.Doc != nil && strings.Contains(strings.Join(strings.Fields(f.Doc.Text()), " "), "The package is no API")
		}
		if !says {
			t.Errorf("the documentation of pkg/%s does not say that it is no API", name)
		}
	}
}
