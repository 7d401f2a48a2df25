package api

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite the files in testdata")

const module = "github.com/azconc/azconc/"

// public reports whether the API of a package is pinned: others can import it.
func public(path string) bool {
	return !strings.Contains(path+"/", "/internal/") && !strings.HasPrefix(path, module+"cmd/")
}

func TestTheAPIIsTheOneThatWasReviewed(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{.Dir}}", "../../../...", "github.com/azconc/azconc/pkg/telemetry/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var compared []string
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !public(path) {
			continue
		}
		got, err := Of(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		hidden, err := HiddenTypes(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range hidden {
			t.Errorf("%s: %s: go doc does not show what an internal package declares; declare the type here", path, one)
		}
		name := strings.ReplaceAll(strings.TrimPrefix(path, module), "/", ".") + ".txt"
		compared = append(compared, name)
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != got {
			t.Errorf("%s: the API is not that of testdata/%s (%v): %s\nreview it, and run go test ./pkg/internal/api -args -update", path, name, err, difference(string(want), got))
		}
	}
	if !slices.Contains(compared, "optimistic.txt") || len(compared) < 8 {
		t.Fatalf("compared only %q", compared)
	}
	kept, _ := filepath.Glob("testdata/*.txt")
	for _, file := range kept {
		if slices.Contains(compared, filepath.Base(file)) {
			continue
		}
		if !*update {
			t.Errorf("%s is the API of no package: remove it", file)
		} else if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}

// difference lists the lines that only one of two texts has.
func difference(want, got string) string {
	var b strings.Builder
	only := func(sign, a, other string) {
		has := strings.Split(other, "\n")
		for line := range strings.SplitSeq(a, "\n") {
			if !slices.Contains(has, line) {
				b.WriteString("\n" + sign + line)
			}
		}
	}
	only("-", want, got)
	only("+", got, want)
	return b.String()
}

func TestOnlyWhatIsExportedIsPartOfAnAPI(t *testing.T) {
	dir := t.TempDir()
	const src = `// Package x is one.
package x

// Limit is a limit.
const Limit, hidden = 3, 4

// T is a type.
type T struct {
	// A is a field.
	A int
	b int
}

// New makes one.
func New() *T { return nil }

func (t *T) M(n int) error { return nil }
func (t *T) m()            {}
func helper()              {}
`
	if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(src), 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := Of(dir, "example.org/x")
	const want = `const Limit, _ = 3, 4
type T struct {
    A int
    // contains filtered or unexported fields
}
func New() *T
func (t *T) M(n int) error
`
	if err != nil || got != want {
		t.Errorf("Of = %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestWhatAnInternalPackageDeclaresIsFound(t *testing.T) {
	dir := t.TempDir()
	const src = `package x

import (
	"example.org/x/internal/hidden"
	in "example.org/x/internal/other"
	"example.org/x/open"
)

type (
	A        = hidden.A
	B[T any] = in.B[T]
	C        = open.C
	d        = hidden.D
	E        struct {
		F hidden.F
		g hidden.G
	}
)

func H(h func(*hidden.H) error) open.C { return hidden.Of(h) }
func i(*hidden.I)                      {}

func (A) J(all ...in.J) {}
func (A) k(hidden.K)    {}
`
	if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(src), 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := HiddenTypes(dir, "example.org/x")
	if want := []string{"H: hidden.H", "A: hidden.A", "A.J: in.J", "B: in.B", "E: hidden.F"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("HiddenTypes = %q, %v; want %q", got, err, want)
	}
}
