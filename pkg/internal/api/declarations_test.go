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

// HiddenTypes returns the uses, in exported types and functions of the package in the folder dir, of what internal packages declare, each
// as "declaration: package.Name".
func HiddenTypes(dir, importPath string) (hidden []string, err error) {
	fset, files, err := parse(dir)
	if err != nil {
		return nil, err
	}
	internal := map[string]map[string]bool{} // by file, the names under which it imports internal packages
	for _, f := range files {
		names := map[string]bool{}
		for _, i := range f.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			name := path[strings.LastIndexByte(path, '/')+1:]
			if i.Name != nil {
				name = i.Name.Name
			}
			names[name] = strings.Contains(path+"/", "/internal/")
		}
		internal[fset.Position(f.Package).Filename] = names
	}
	p, err := doc.NewFromFiles(fset, files, importPath)
	if err != nil {
		return nil, err
	}
	in := func(of string, d ast.Node) {
		names := internal[fset.Position(d.Pos()).Filename]
		ast.Inspect(d, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if from, ok := s.X.(*ast.Ident); ok && names[from.Name] {
					hidden = append(hidden, of+": "+from.Name+"."+s.Sel.Name)
				}
			}
			return true
		})
	}
	funcs := func(of string, all []*doc.Func) {
		for _, f := range all {
			f.Decl.Body = nil
			in(of+f.Name, f.Decl)
		}
	}
	funcs("", p.Funcs)
	for _, t := range p.Types {
		for _, spec := range t.Decl.Specs {
			in(t.Name, spec)
		}
		funcs("", t.Funcs)
		funcs(t.Name+".", t.Methods)
	}
	return hidden, nil
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
