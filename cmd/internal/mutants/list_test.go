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
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("two mutants are named %q", m.name)
		}
		names[m.name] = true
		source, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("%s: the text to replace is %d times in %s, want once", m.name, n, m.file)
		}
		if info, err := os.Stat(filepath.Join(root, m.pkg)); err != nil || !info.IsDir() {
			t.Errorf("%s: no package %s", m.name, m.pkg)
		}
		if _, err := regexp.Compile(m.run); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// TestMostMutantsArePlantedTogether: what cannot be planted within a function takes a build of its own, so few may be of that kind.
func TestMostMutantsArePlantedTogether(t *testing.T) {
	var numbers []int
	for n := range mutants {
		numbers = append(numbers, n)
	}
	sources, alone, err := plant(filepath.Join("..", "..", ".."), numbers)
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
		if !f.plant(n, mutant{old: text, new: strings.NewReplacer("1", "4", "2", "5", "3", "6").Replace(text)}) {
			t.Errorf("%s is not planted", text)
		}
	}
	if f.plant(3, mutant{old: "v T", new: "w T"}) {
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
