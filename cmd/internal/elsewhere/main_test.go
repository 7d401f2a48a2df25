package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const module = "module example.com/there\n\ngo 1.26\n"

// A fault is found in the files of another system and in those that Linux compiles without complaint, tests included.
func TestFaultsOfOtherSystemsAreFound(t *testing.T) {
	const kill = "\n\nimport \"syscall\"\n\nvar kill = syscall.Kill\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"no fault": {map[string]string{"here_darwin.go": "package there\n\nfunc Here() { undefined() }\n"}, nil},
		"what does not compile": {map[string]string{
			"all.go": "package there" + kill, "all_test.go": "package there\n\nvar _ = kill\nvar _ = undefinedInATest\n", "other_test.go": "package there_test" + kill,
			"more_windows.go": "package there\n\nfunc Here() {}\n", "no_windows.go": "package there\n\nfunc {\n",
		}, []string{"all.go:5:20: undefined: syscall.Kill", "undefined: undefinedInATest", "other_test.go:5:20: undefined: syscall.Kill", "Here redeclared", "no_windows.go:3"}},
		"what go vet reports": {map[string]string{"more_windows.go": "package there\n\nimport \"fmt\"\n\nfunc More() { fmt.Printf(\"%d\", \"x\") }\n"},
			[]string{"printf: fmt.Printf format %d has arg \"x\" of wrong type string"}},
		"no file that Linux does not compile": {map[string]string{"here_windows.go": ""}, []string{errNothingVetted.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"go.mod": module, "there.go": "package there\n", "here_windows.go": "package there\n\nfunc Here() {}\n"}
			maps.Copy(files, c.files)
			for name, text := range files {
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := examine(dir, "windows")
			if c.want == nil && (err != nil || got != (report{packages: 1, vetted: 1})) {
				t.Errorf("%+v, %v, want one package without a fault", got, err)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want an error with %q", err, want)
				}
			}
		})
	}
}
