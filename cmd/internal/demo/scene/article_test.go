package scene

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var top = filepath.Join("..", "..", "..", "..")

// TestThePageIsTheOneThatTheRowsMake compares .github/docs/article.md with the rows.
func TestThePageIsTheOneThatTheRowsMake(t *testing.T) {
	file, got := filepath.Join(top, ".github", "docs", "article.md"), page()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || strings.ReplaceAll(string(want), "\r\n", "\n") != got {
		t.Errorf("%s is not the page (%v); run go test ./cmd/internal/demo/scene -run Page -args -update", file, err)
	}
}

// TestWhatTheRowsNameExists looks for each identifier and test in the sources, for each command in the golden help, and for each scene.
func TestWhatTheRowsNameExists(t *testing.T) {
	played := map[string]bool{}
	for _, r := range rows {
		slash := strings.LastIndex(r.Call, "/") + 1
		dir, name, _ := strings.Cut(r.Call[slash:], ".")
		if !declared(t, r.Call[:slash]+dir, false)[name] {
			t.Errorf("%s: there is no %s", r.Topic, r.Call)
		}
		folder, test, _ := strings.Cut(r.Test, ":")
		if !declared(t, folder, true)[test] {
			t.Errorf("%s: there is no test %s in %s", r.Topic, test, folder)
		}
		group, _, _ := strings.Cut(r.Command, " ")
		help, err := os.ReadFile(filepath.Join(top, "cmd", "azconc", "internal", "cli", "root", "testdata", "help", group+".txt"))
		if err != nil || !strings.Contains(strings.ReplaceAll(string(help), "\r\n", "\n"), "\n$ azconc help "+r.Command+"\n") {
			t.Errorf("%s: there is no command azconc %s (%v)", r.Topic, r.Command, err)
		}
		if _, err := Find(r.Scene); err != nil {
			t.Errorf("%s: %v", r.Topic, err)
		}
		played[r.Scene] = true
	}
	for _, s := range All {
		if !played[s.Name] && !strings.HasPrefix(s.Name, "lost-") && s.Name != "paused-holder" { // which the article does not mention
			t.Errorf("no row has the scene %s", s.Name)
		}
	}
}

var known = map[string]map[string]bool{}

// declared returns the identifiers that a folder declares, methods as Type.Method.
func declared(t *testing.T, folder string, tests bool) map[string]bool {
	key := fmt.Sprint(folder, tests)
	if names := known[key]; names != nil {
		return names
	}
	names := map[string]bool{}
	sources, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(folder), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") && !tests {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names[spec.Name.Name] = true
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	known[key] = names
	return names
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return "?."
}
