package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// selects names the environment variable that selects a mutant, by its number in the list.
const selects = "PLANTED_MUTANT"

// switchFile goes into every package with a mutant that can be switched on.
const switchFile = "package %s\n\nimport \"os\"\n\nvar plantedMutant = os.Getenv(\"" + selects + "\")\n"

// plant returns the sources in which the mutants with these numbers can be switched on, by path, and the numbers of those
// that cannot, because their mistake is not within one function. Each function with a mistake stands there twice: the copy has the
// mistake, and the original begins with a call of the copy, if that mutant is the planted one. So one build serves all mutants.
func plant(root string, mutants []mutant, numbers []int) (sources map[string]string, alone []int, err error) {
	fields := map[string]*field{}
	for _, n := range numbers {
		m := mutants[n]
		source, from, to, err := m.find(root)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", m.name, err)
		}
		if fields[m.file] == nil {
			if fields[m.file], err = newField(source); err != nil {
				return nil, nil, err
			}
		}
		if !fields[m.file].plant(n, from, to, m.replacement()) {
			alone = append(alone, n)
		}
	}
	sources = map[string]string{}
	for file, f := range fields {
		if path := filepath.Join(root, file); len(f.edits) > 0 {
			sources[path] = f.result()
			sources[filepath.Join(filepath.Dir(path), "planted_mutant.go")] = fmt.Sprintf(switchFile, f.file.Name.Name)
		}
	}
	return sources, alone, nil
}

// field is a source file in which mutants are planted.
type field struct {
	source string
	file   *ast.File
	edits  map[int]string // what is inserted at an offset, or what "_" there becomes
	copies strings.Builder
}

func newField(source string) (*field, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	return &field{source: source, file: file, edits: map[int]string{}}, err
}

// at returns the offset of a position: each file is the only one of its set.
func at(p token.Pos) int { return int(p) - 1 }

// plant plants a mutant, unless the text that it replaces is not within the body of one function.
func (f *field) plant(n, from, to int, mistake string) bool {
	for _, d := range f.file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || from <= at(fn.Body.Lbrace) || to >= at(fn.End()) {
			continue
		}
		suffix := "Mutant" + strconv.Itoa(n)
		named := at(fn.Name.End())
		f.copies.WriteString("\n" + f.source[at(fn.Pos()):named] + suffix + f.source[named:from] + mistake + f.source[to:at(fn.End())] + "\n")
		call := f.receiver(fn) + fn.Name.Name + suffix + typeArguments(fn) + "(" + strings.Join(f.arguments("planted", fn.Type.Params), ", ") + ")"
		if fn.Type.Results != nil {
			call = "return " + call
		} else {
			call += "; return"
		}
		f.edits[at(fn.Body.Lbrace)+1] += fmt.Sprintf(" if plantedMutant == %q { %s };", strconv.Itoa(n), call)
		return true
	}
	return false
}

func (f *field) receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	return f.arguments("plantedReceiver", fn.Recv)[0] + "."
}

// arguments returns the names of the parameters, and gives those that have none one that begins with the prefix.
func (f *field) arguments(prefix string, params *ast.FieldList) (names []string) {
	for _, p := range params.List {
		dots := ""
		if _, ok := p.Type.(*ast.Ellipsis); ok {
			dots = "..."
		}
		name := func() string { return fmt.Sprintf("%s%d", prefix, len(names)) }
		if len(p.Names) == 0 {
			f.edits[at(p.Type.Pos())] = name() + " "
			names = append(names, name()+dots)
		}
		for _, id := range p.Names {
			if id.Name == "_" {
				f.edits[at(id.Pos())] = name()
				id.Name = name()
			}
			names = append(names, id.Name+dots)
		}
	}
	return names
}

func typeArguments(fn *ast.FuncDecl) string {
	if fn.Type.TypeParams == nil {
		return ""
	}
	var names []string
	for _, p := range fn.Type.TypeParams.List {
		for _, id := range p.Names {
			names = append(names, id.Name)
		}
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// result returns the source with what was planted. What it inserts into the original has no line ends, so that positions stay.
func (f *field) result() string {
	out := f.source
	for _, o := range slices.Backward(slices.Sorted(maps.Keys(f.edits))) {
		rest := out[o:]
		if strings.HasPrefix(f.edits[o], "planted") && !strings.HasSuffix(f.edits[o], " ") {
			rest = rest[len("_"):]
		}
		out = out[:o] + f.edits[o] + rest
	}
	return out + f.copies.String()
}
