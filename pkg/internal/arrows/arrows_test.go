package arrows

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/azconc/azconc"

func TestThisRepositoryKeepsItsShape(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "go.mod")); err != nil || !strings.HasPrefix(string(data), "module "+module+"\n") {
		t.Fatalf("%s is not the top of the repository (%v)", root, err)
	}
	files := tracked(t, root)
	findings, err := check(os.DirFS(root), module, files)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}

// tracked lists the files that git tracks, or all there are in a copy that is not git's.
func tracked(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
		out, err := exec.CommandContext(t.Context(), "git", "-c", "safe.directory="+root, "-C", root, "ls-files", "-z").Output()
		if err != nil {
			t.Fatalf("git ls-files: %v", err)
		}
		files = strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	} else if err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(files, "pkg/internal/arrows/arrows_test.go") && !slices.Contains(files, "go.mod") {
		t.Fatalf("%d files are listed, and neither go.mod nor this one is among them", len(files))
	}
	return files
}

// sound is a repository in which nothing is to be found.
func sound() map[string]string {
	return map[string]string{
		"go.mod":               "module " + module,
		".ci/run":              "",
		".gitignore":           "",
		"README.md":            "",
		"cmd/azconc/main.go":   "// Command azconc is it.\npackage main\nimport _ \"" + module + "/cmd/azconc/internal/cli\"",
		"scripts/test":         "",
		"pkg/azerr/azerr.go":   "// Package azerr is one.\npackage azerr\nimport _ \"" + module + "/pkg/resource\"",
		"pkg/azurite/start.go": "// Package azurite is one.\npackage azurite\nimport _ \"" + module + "/pkg/retry\"",
		"pkg/azurite/azuritetest/share.go": "// Package azuritetest is one.\npackage azuritetest\nimport _ \"testing\"\nimport _ \"" +
			module + "/pkg/azurite\"",
		"pkg/aztest/history/history.go": "// Package history is one.\npackage history\nimport _ \"" + module + "/pkg/aztest\"",
		"cmd/azconc/internal/cli/cli.go": "// Package cli is one.\npackage cli\nimport _ \"github.com/spf13/cobra\"\nimport _ \"" +
			module + "/idempotent\"\nimport _ \"" + module + "/pkg/azurite\"",
		"optimistic/doc.go":    "// Package optimistic is one.\npackage optimistic",
		"optimistic/update.go": "package optimistic\nimport _ \"" + module + "/pkg/azerr\"\nimport \"time\"\nfunc f() { time.Sleep(1) }",
		"optimistic/update_test.go": "package optimistic_test\nimport (\n\"testing\"\n\"testing/synctest\"\n\"time\"\n_ \"" + module +
			"/pkg/aztest\"\n\"" + module + "/pkg/aztest/bubble\"\n_ \"" + module + "/pessimistic\"\n)\nfunc f() { bubble.Sleep(1) }",
		"pessimistic/lease.go": "// Package pessimistic is one.\npackage pessimistic\nimport _ \"" + module + "/pkg/retry\"",
		"idempotent/once.go": "// Package idempotent is one.\npackage idempotent\nimport _ \"" + module + "/optimistic\"\nimport _ \"" +
			module + "/pessimistic\"",
		"optimistic/wait_test.go": "package optimistic\nimport \"time\"\nvar _ = time.After\nfunc g(s interface{ Sleep() }) { s.Sleep() }",
	}
}

// checkWith checks the sound repository with other files in it.
func checkWith(t *testing.T, planted map[string]string) []string {
	t.Helper()
	repo := sound()
	for name, text := range planted {
		repo[name] = text
	}
	fsys := make(fstest.MapFS)
	files := []string{"optimistic/removed.go"} // tracked still, but gone
	for name, text := range repo {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
		files = append(files, name)
	}
	findings, err := check(fsys, module, files)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestASoundRepositoryIsAcquitted(t *testing.T) {
	if findings := checkWith(t, nil); len(findings) != 0 {
		t.Errorf("found %q", findings)
	}
}

func imports(pkg, path string) string {
	return "// Package " + pkg + " is one.\npackage " + pkg + "\nimport _ \"" + strings.Replace(path, "./", module+"/", 1) + "\"\n"
}

func TestEachViolationIsConvicted(t *testing.T) {
	for _, test := range []struct{ name, file, text, want string }{
		{"a new entry at the top", "tools/tool.txt", "", "tools: does not belong"},
		{"a file at the top", "Makefile", "", "Makefile: does not belong"},
		{"siblings", "optimistic/x.go", imports("optimistic", "./pessimistic"), "do not know each other"},
		{"siblings, the other way", "pessimistic/x.go", imports("pessimistic", "./optimistic"), "do not know each other"},
		{"upwards to idempotent", "pessimistic/x.go", imports("pessimistic", "./idempotent"), "do not know each other"},
		{"pkg to a library", "pkg/azerr/x.go", imports("azerr", "./optimistic"), "everything else stands on"},
		{"pkg to the command line", "pkg/azerr/x.go", imports("azerr", "./cmd/azconc/internal/cli"), "everything else stands on"},
		{"a library to the command line", "idempotent/x.go", imports("idempotent", "./cmd/azconc/internal/cli"), "builds on the two others"},
		{"main past the command line", "cmd/azconc/x.go", imports("main", "./optimistic"), "knows nothing else"},
		{"a program in pkg", "pkg/tool/main.go", "// Command tool is one.\npackage main\n", "programs are in cmd"},
		{"a program that knows the command line", "cmd/internal/tool/x.go", imports("tool", "./cmd/azconc/internal/cli"), "do not know the command line"},
		{"the command line and a program", "cmd/azconc/internal/cli/x.go", imports("cli", "./cmd/internal/tool"), "the command line is the only one"},
		{"a program in production code", "pkg/retry/x.go", imports("retry", "./cmd/internal/tool"), "everything else stands on"},
		{"a service in memory in a program for users", "cmd/internal/tool/x.go", imports("tool", "./pkg/aztest"), "never reach production code"},
		{"a folder nobody thought of", "scripts/x.go", imports("main", "./optimistic"), "lies in no layer"},
		{"cobra in a library", "optimistic/x.go", imports("optimistic", "github.com/spf13/cobra"), "only the command line knows cobra"},
		{"pflag in main", "cmd/azconc/x.go", imports("main", "github.com/spf13/pflag"), "only the command line knows cobra"},
		{"cobra in a test", "optimistic/x_test.go", imports("optimistic", "github.com/spf13/cobra"), "only the command line knows cobra"},
		{"aztest in a library", "optimistic/x.go", imports("optimistic", "./pkg/aztest"), "never reach production code"},
		{"aztest below it", "cmd/azconc/internal/cli/x.go", imports("cli", "./pkg/aztest/history"), "never reach production code"},
		{"aztest in another build", "optimistic/x_plan9.go", "//go:build plan9\n\n" + imports("optimistic", "./pkg/aztest"), "never reach production code"},
		{"Azurite in a library", "idempotent/x.go", imports("idempotent", "./pkg/azurite"), "does not start processes"},
		{"azuritetest in the command line", "pkg/retry/x.go", imports("retry", "./pkg/azurite/azuritetest"), "does not start processes"},
		{"testing in a library", "optimistic/x.go", imports("optimistic", "testing"), "belongs into tests"},
		{"testing/iotest in a library", "optimistic/x.go", imports("optimistic", "testing/iotest"), "belongs into tests"},
		{"no doc comment", "pkg/silent/x.go", "package silent\n", "pkg/silent: package silent has no doc comment"},
		{"a comment apart from the package", "pkg/silent/x.go", "// Package silent is one.\n\npackage silent\n", "has no doc comment"},
		{"a doc comment in a test alone", "pkg/silent/x.go", "package silent\n", "has no doc comment"},
		{"a sleep", "optimistic/x_test.go", "package optimistic\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", "calls time.Sleep"},
		{"a sleep beside a bubble", "optimistic/x_test.go", "package optimistic\nimport \"time\"\nimport _ \"testing/synctest\"\nfunc f() { time.Sleep(1) }\n", "calls time.Sleep"},
		{"a sleep by another name", "optimistic/x_test.go", "package optimistic\nimport t \"time\"\nfunc f() { g(t.Sleep) }\n", "calls time.Sleep"},
		{"a sleep without a name", "optimistic/x_test.go", "package optimistic\nimport . \"time\"\nfunc f() { Sleep(1) }\n", "calls time.Sleep"},
		{"the SDK's retries", "pessimistic/x.go", "package pessimistic\nvar _ = p.RetryOptions{MaxRetries: -1}\n", "mentions MaxRetries"},
		{"a long file", "optimistic/x.go", "package optimistic\n" + strings.Repeat("//\n", maxLines), "has 451 lines"},
		{"a long test", "optimistic/x_test.go", "package optimistic\n" + strings.Repeat("//\n", maxLines), "has 451 lines"},
	} {
		t.Run(test.name, func(t *testing.T) {
			planted := map[string]string{test.file: test.text}
			if test.name == "a doc comment in a test alone" {
				planted["pkg/silent/x_test.go"] = "// Package silent is one.\npackage silent\n"
			}
			findings := checkWith(t, planted)
			if len(findings) != 1 || !strings.Contains(findings[0], test.want) {
				t.Errorf("found %q, want one with %q", findings, test.want)
			}
		})
	}
}

func TestALargePackageIsConvicted(t *testing.T) {
	planted := map[string]string{"pkg/wide/x.go": wide(maxExported + 1)}
	for i := range maxFiles + 1 {
		planted[fmt.Sprintf("pkg/long/x%d.go", i)] = "// Package long is one.\npackage long\nfunc (t) M() {}\nfunc f() {}\ntype t struct{}\n"
	}
	findings := checkWith(t, planted)
	want := []string{"pkg/long: has 31 files", "pkg/wide: exports 61 names"}
	if len(findings) != len(want) || !strings.HasPrefix(findings[0], want[0]) || !strings.HasPrefix(findings[1], want[1]) {
		t.Errorf("found %q, want %q", findings, want)
	}
	if findings := checkWith(t, map[string]string{"pkg/wide/x.go": wide(maxExported)}); len(findings) != 0 {
		t.Errorf("found %q in a package of %d names", findings, maxExported)
	}
}

// wide is a package that exports n names: constants, variables and types in groups and alone, and functions. It also has names
// of each kind that are not exported, and a method.
func wide(n int) string {
	text := "// Package wide is one.\npackage wide\nconst (\nA = iota\nB\nc\n)\nvar D, e = 1, 2\nvar f int\ntype (\nG = int\nH struct{}\ni int\n)\n" +
		"func NewH() *H { return nil }\nfunc (H) M() {}\nfunc j() {}\nfunc k() {}\nconst L = 1\n"
	for i := range n - 7 {
		text += fmt.Sprintf("func F%d() {}\n", i)
	}
	return text
}

func TestAFileOfExactlyTheLimitIsNotTooLong(t *testing.T) {
	if findings := checkWith(t, map[string]string{"optimistic/x.go": "package optimistic\n" + strings.Repeat("//\n", maxLines-1)}); len(findings) != 0 {
		t.Errorf("found %q", findings)
	}
}

func TestAFileThatIsNotGoIsAnError(t *testing.T) {
	fsys := fstest.MapFS{"pkg/x/x.go": {Data: []byte("packag x")}}
	if findings, err := check(fsys, module, []string{"pkg/x/x.go"}); err == nil {
		t.Errorf("check = %q, nil, want an error", findings)
	}
}
