package api

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Of returns the exported declarations of the package in the folder dir, sorted as go doc sorts them. A type is followed
// by its functions and methods. Files of all systems count.
func Of(dir, importPath string) (string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		files = append(files, f)
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
