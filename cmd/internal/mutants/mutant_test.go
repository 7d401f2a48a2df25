package main

import (
	"go/parser"
	"go/token"
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
	for _, m := range loaded(t) {
		if names[m.name] {
			t.Errorf("two mutants are named %q", m.name)
		}
		names[m.name] = true
		if _, _, _, err := m.find(root); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if info, err := os.Stat(filepath.Join(root, m.pkg)); err != nil || !info.IsDir() {
			t.Errorf("%s: no package %s", m.name, m.pkg)
		}
		if _, err := regexp.Compile(m.run); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

func loaded(t *testing.T) []mutant {
	t.Helper()
	mutants, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return mutants
}

// TestIndentationDoesNotCount, nor does what surrounds the text: a mutant survives edits elsewhere.
func TestIndentationDoesNotCount(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("\tif a {\n\t\tif b { // why\n\t\t\tc()\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"# n\nfile a.go\ntest ./p T\n- if b { // why\n- c()\n+ c()\n": "if b { // why\n\t\t\tc()",
		"# n\nfile a.go\ntest ./p T\n- if b {\n":                      "if b {",
		"# n\nfile a.go\ntest ./p T\n- if\n":                          "the text to replace is more than once in a.go",
		"# n\nfile a.go\ntest ./p T\n- d()\n":                         "the text to replace is not in a.go",
		"# n\nfile a.go\n- d()\n":                                     "needs",
		"# n\nfile a.go\ntest ./p T\nd()\n":                           "begins with none",
	} {
		m, err := parse(text)
		got := ""
		if err == nil {
			var source string
			var from, to int
			source, from, to, err = m[0].find(root)
			got = source[from:to]
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestMostMutantsArePlantedTogether: what cannot be planted within a function takes a build of its own, so few may be of that kind.
func TestMostMutantsArePlantedTogether(t *testing.T) {
	mutants := loaded(t)
	var numbers []int
	for n := range mutants {
		numbers = append(numbers, n)
	}
	sources, alone, err := plant(filepath.Join("..", "..", ".."), mutants, numbers)
	if err != nil {
		t.Fatal(err)
	}
	for path, source := range sources {
		if _, err := parser.ParseFile(token.NewFileSet(), path, source, 0); err != nil {
			t.Error(err)
		}
	}
	if len(alone) > len(mutants)/10 {
		t.Errorf("%d of %d mutants are built alone", len(alone), len(mutants))
	}
	for _, n := range alone {
		t.Logf("built alone: %s", mutants[n].name)
	}
}

// TestAFunctionCallsItsPlantedCopy, whatever its parameters look like.
func TestAFunctionCallsItsPlantedCopy(t *testing.T) {
	const source = `package p
type box[T any] struct{ v T }
func (box[T]) unnamed(int, string) int { return 1 }
func (b *box[T]) named(_ int, s ...string) (n int, err error) { n = 2; return n, nil }
func nothing[K comparable, V any](m map[K]V) { println(3) }
`
	f, err := newField(source)
	if err != nil {
		t.Fatal(err)
	}
	for n, text := range []string{"return 1", "n = 2", "println(3)"} {
		from := strings.Index(source, text)
		if !f.plant(n, from, from+len(text), strings.NewReplacer("1", "4", "2", "5", "3", "6").Replace(text)) {
			t.Errorf("%s is not planted", text)
		}
	}
	if from := strings.Index(source, "v T"); f.plant(3, from, from+len("v T"), "w T") {
		t.Error("a mistake outside of a function is planted")
	}
	const want = `package p
type box[T any] struct{ v T }
func (plantedReceiver0 box[T]) unnamed(planted0 int, planted1 string) int { if plantedMutant == "0" { return plantedReceiver0.unnamedMutant0(planted0, planted1) }; return 1 }
func (b *box[T]) named(planted0 int, s ...string) (n int, err error) { if plantedMutant == "1" { return b.namedMutant1(planted0, s...) }; n = 2; return n, nil }
func nothing[K comparable, V any](m map[K]V) { if plantedMutant == "2" { nothingMutant2[K, V](m); return }; println(3) }

func (box[T]) unnamedMutant0(int, string) int { return 4 }

func (b *box[T]) namedMutant1(_ int, s ...string) (n int, err error) { n = 5; return n, nil }

func nothingMutant2[K comparable, V any](m map[K]V) { println(6) }
`
	if got := f.result(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
