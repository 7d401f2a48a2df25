package arrows

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// check returns what breaks a rule in files, which are the paths of all files of the repository in fsys, as a sentence
// each that begins with a path. A file that fsys does not have is taken for removed. module is the module's path.
//
// All Go files count, whatever their build constraints: an import that only Windows sees is an import.
func check(fsys fs.FS, module string, files []string) ([]string, error) {
	c := &checker{module: module, packages: make(map[string]*pkg)}
	for _, name := range files {
		if err := c.file(fsys, name); err != nil {
			return nil, err
		}
	}
	for dir, p := range c.packages {
		if !p.documented {
			c.found(dir, "package %s has no doc comment", p.name)
		}
		if p.files > maxFiles {
			c.found(dir, "has %d files, more than %d: it has more than one subject", p.files, maxFiles)
		}
		if p.name == "main" && within(dir, "pkg") {
			c.found(dir, "is a program: programs are in cmd")
		}
		if p.exported > maxExported {
			c.found(dir, "exports %d names, more than %d: it has more than one subject", p.exported, maxExported)
		}
	}
	slices.Sort(c.findings)
	return slices.Compact(c.findings), nil
}

type checker struct {
	module   string
	packages map[string]*pkg // by folder, those that have more than tests
	findings []string
}

type pkg struct {
	name       string
	documented bool
	files      int
	exported   int // names that go doc lists
}

func (c *checker) found(where, format string, args ...any) {
	c.findings = append(c.findings, where+": "+fmt.Sprintf(format, args...))
}

func (c *checker) file(fsys fs.FS, name string) error {
	data, err := fs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	top, _, _ := strings.Cut(name, "/")
	if !strings.HasPrefix(top, ".") && !slices.Contains(topLevel, top) {
		c.found(top, "does not belong to the top level, which is fixed")
	}
	if err != nil || !strings.HasSuffix(name, ".go") {
		return err
	}
	if n := bytes.Count(data, []byte("\n")); n > maxLines {
		c.found(name, "has %d lines, more than %d: it has more than one subject", n, maxLines)
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	imports := make(map[string]string) // path to the name it is used by
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		imports[p] = path.Base(p)
		if spec.Name != nil {
			imports[p] = spec.Name.Name
		}
	}
	dir, test := path.Dir(name), strings.HasSuffix(name, "_test.go")
	for p := range imports {
		c.imported(name, dir, p, test)
	}
	if test {
		if sleeps(f, imports["time"]) {
			c.found(name, "calls time.Sleep: wait for the thing itself, or call bubble.Sleep in a synctest bubble")
		}
		return nil
	}
	c.spoken(name, dir, f)
	p := c.packages[dir]
	if p == nil {
		p = &pkg{name: f.Name.Name}
		c.packages[dir] = p
	}
	p.files++
	p.exported += exported(f)
	p.documented = p.documented || f.Doc != nil && strings.TrimSpace(f.Doc.Text()) != ""
	return nil
}

// imported holds one import against the layers and the bans. Tests are free of the layers: they stand above all.
func (c *checker) imported(name, dir, imported string, test bool) {
	inside, ours := strings.CutPrefix(imported, c.module+"/")
	for _, b := range bans {
		banned, own := strings.CutPrefix(b.path, "./")
		if own != ours || test && !b.tests || !within(strings.TrimPrefix(imported, c.module+"/"), banned) {
			continue
		}
		if !slices.ContainsFunc(b.only, func(only string) bool { return within(dir, only) }) {
			c.found(name, "imports %s: %s", imported, b.why)
			return
		}
	}
	if !ours || test {
		return
	}
	l, ok := layerOf(dir)
	if !ok {
		c.found(name, "lies in no layer: say in rules_test.go what %s may import", dir)
		return
	}
	if within(inside, l.dir) {
		return
	}
	if !slices.ContainsFunc(l.may, func(may string) bool { return within(inside, may) }) {
		c.found(name, "imports %s: %s", imported, l.why)
	}
}

// spoken holds the identifiers of a file against the words.
func (c *checker) spoken(name, dir string, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		for _, w := range words {
			if id.Name == w.name && !slices.ContainsFunc(w.only, func(only string) bool { return within(dir, only) }) {
				c.found(name, "mentions %s: %s", w.name, w.why)
			}
		}
		return true
	})
}

func layerOf(dir string) (layer, bool) {
	var best layer
	for _, l := range layers {
		if within(dir, l.dir) && len(l.dir) > len(best.dir) {
			best = l
		}
	}
	return best, best.dir != ""
}

func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// exported counts the exported names that f declares: functions, types, constants and variables.
func exported(f *ast.File) (n int) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				n++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						n++
					}
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						if name.IsExported() {
							n++
						}
					}
				}
			}
		}
	}
	return n
}

// sleeps tells whether f calls Sleep of the package time, by whatever name that goes in f.
func sleeps(f *ast.File, time string) bool {
	if time == "" {
		return false
	}
	var found bool
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			found = found || ok && x.Name == time && n.Sel.Name == "Sleep"
		case *ast.Ident:
			found = found || time == "." && n.Name == "Sleep"
		}
		return !found
	})
	return found
}
