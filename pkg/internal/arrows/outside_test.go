package arrows

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAUserCompilesOnlyTheseModules: a module that imports the three libraries, and nothing of the command line or of telemetry,
// compiles code of the listed modules alone, whatever the root's go.mod requires for the command.
func TestAUserCompilesOnlyTheseModules(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	imports := func(packages ...string) string {
		text := "package main\n\nimport (\n"
		for _, p := range packages {
			text += fmt.Sprintf("\t_ %q\n", module+"/"+p)
		}
		return text + ")\n\nfunc main() {}\n"
	}
	modules := func(packages ...string) []string {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"go.mod":  fmt.Sprintf("module example.com/shop\n\ngo 1.26.0\n\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, root),
			"go.sum":  string(sums),
			"main.go": imports(packages...),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list := exec.CommandContext(t.Context(), "go", "list", "-mod=mod", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
		list.Dir = dir
		list.Env = append(os.Environ(), "GOWORK=off")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list: %v: %s", err, stderrOf(err))
		}
		all := strings.Fields(string(out))
		slices.Sort(all)
		return slices.Compact(all)
	}
	libraries := []string{"optimistic", "optimistic/blobs", "optimistic/tables", "optimistic/settings", "pessimistic", "pessimistic/election", "pessimistic/shared", "idempotent", "idempotent/once"}
	got := modules(libraries...)
	golden := filepath.Join("testdata", "modules.txt")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(got, "\n") + "\n"; text != string(want) {
		t.Errorf("a program that imports the libraries compiles the modules\n%s\n%s has\n%s", text, golden, want)
	}
	if with := modules(append(libraries, "pessimistic/files")...); !slices.Contains(with, "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile") {
		t.Errorf("with Azure Files it compiles %v: the test sees no modules", with)
	}
}

func stderrOf(err error) string {
	if exit, ok := err.(*exec.ExitError); ok {
		return string(exit.Stderr)
	}
	return ""
}
