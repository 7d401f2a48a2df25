package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/tools/go/packages"
)

// checker type-checks packages in the order of their imports.
type checker struct {
	files   *token.FileSet
	sizes   types.Sizes
	typed   map[string]*types.Package // by import path
	checked map[string]*packages.Package
	foreign []*packages.Package // those to vet
	own     int                 // packages of this repository
	faults  faults
}

// faults is an error that has one line for each of them.
type faults []string

func (f faults) Error() string { return strings.Join(f, "\n") }

func newChecker(files *token.FileSet) *checker {
	return &checker{
		files: files, sizes: types.SizesFor("gc", runtime.GOARCH),
		typed: map[string]*types.Package{"unsafe": types.Unsafe}, checked: map[string]*packages.Package{},
	}
}

// check type-checks a package. What is in the functions of a dependency is the business of its authors.
func (c *checker) check(p *listed) {
	if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
		return // the latter is a main package that go test writes
	}
	path, _, _ := strings.Cut(p.ImportPath, " ") // "p [q.test]" is p, compiled for the test of q
	result := &packages.Package{
		ID: p.ImportPath, PkgPath: path, Name: p.Name, Fset: c.files, TypesSizes: c.sizes, Imports: map[string]*packages.Package{},
		TypesInfo: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Implicits: map[ast.Node]types.Object{}, Instances: map[*ast.Ident]types.Instance{}, Scopes: map[ast.Node]*types.Scope{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, FileVersions: map[*ast.File]string{},
		},
	}
	config := types.Config{
		Sizes: c.sizes, FakeImportC: true, IgnoreFuncBodies: !p.own(),
		Importer: importer(func(source string) (*types.Package, error) {
			target := cmp.Or(p.ImportMap[source], source)
			if dep := c.checked[target]; dep != nil {
				result.Imports[source] = dep
			}
			if t := c.typed[target]; t != nil {
				return t, nil
			}
			return nil, fmt.Errorf("go list does not list %s before %s", target, p.ImportPath)
		}),
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	if p.own() {
		c.own++
		result.Module = &packages.Module{Path: p.Module.Path, GoVersion: p.Module.GoVersion, Main: true}
		config.Error = func(err error) { c.faults = append(c.faults, err.Error()) }
	} else {
		result.TypesInfo = nil
		config.Error = func(error) {} // a dependency that this system cannot compile has no type that is asked for
	}
	mode := parser.SkipObjectResolution
	if p.own() {
		mode |= parser.ParseComments // directives and build tags are vetted
	}
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		file, err := parser.ParseFile(c.files, name, nil, mode)
		if err != nil {
			c.faults = append(c.faults, err.Error())
			continue
		}
		result.Syntax = append(result.Syntax, file)
	}
	typed, err := config.Check(path, c.files, result.Syntax, result.TypesInfo)
	if err != nil && !p.own() {
		c.faults = append(c.faults, fmt.Sprintf("%s: %v", p.ImportPath, err))
	}
	c.typed[p.ImportPath], result.Types = typed, typed
	if !p.own() {
		result.Syntax = nil
		return
	}
	c.checked[p.ImportPath] = result
	if p.foreign() {
		c.foreign = append(c.foreign, result)
	}
}

// importer is a function that finds what is imported.
type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }

var errNothingVetted = errors.New("no package has files that Linux does not compile: the lists of files are wrong")
