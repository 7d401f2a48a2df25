package api

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// Of returns the exported declarations of the package in the folder dir, sorted as go doc sorts them. A type is followed
// by its functions and methods. Files of all systems count.
func Of(dir, importPath string) (string, error) {
	fset, files, err := parse(dir)
	if err != nil {
		return "", err
	}
	p, err := doc.NewFromFiles(fset, files, importPath)
	if err != nil {
		return "", err
	}
	w := writer{fset: fset}
	w.values(p.Consts)
	w.values(p.Vars)
	w.funcs(p.Funcs)
	for _, t := range p.Types {
		w.decl(t.Decl)
		w.values(t.Consts)
		w.values(t.Vars)
		w.funcs(t.Funcs)
		w.funcs(t.Methods)
	}
	return w.out.String(), w.err
}

// HiddenTypes returns the exported types of the package in the folder dir that are aliases of types of internal packages.
func HiddenTypes(dir string) (hidden []string, err error) {
	_, files, err := parse(dir)
	for _, f := range files {
		internal := map[string]bool{}
		for _, i := range f.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			name := path[strings.LastIndexByte(path, '/')+1:]
			if i.Name != nil {
				name = i.Name.Name
			}
			internal[name] = strings.Contains(path+"/", "/internal/")
		}
		ast.Inspect(f, func(n ast.Node) bool {
			t, ok := n.(*ast.TypeSpec)
			if !ok || !t.Assign.IsValid() || !t.Name.IsExported() {
				return true
			}
			of := t.Type
			if generic, ok := of.(*ast.IndexExpr); ok {
				of = generic.X
			}
			if s, ok := of.(*ast.SelectorExpr); ok {
				if from, ok := s.X.(*ast.Ident); ok && internal[from.Name] {
					hidden = append(hidden, t.Name.Name+" = "+from.Name+"."+s.Sel.Name)
				}
			}
			return true
		})
	}
	return hidden, err
}

// parse parses the package in the folder dir, without its tests.
func parse(dir string) (*token.FileSet, []*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	return fset, files, nil
}

type writer struct {
	fset *token.FileSet
	out  bytes.Buffer
	err  error
}

func (w *writer) values(all []*doc.Value) {
	for _, v := range all {
		w.decl(v.Decl)
	}
}

func (w *writer) funcs(all []*doc.Func) {
	for _, f := range all {
		f.Decl.Body = nil
		w.decl(f.Decl)
	}
}

func (w *writer) decl(d ast.Node) {
	if w.err == nil {
		w.err = (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&w.out, w.fset, d)
		w.out.WriteString("\n")
	}
}
