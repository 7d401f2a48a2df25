package readme

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// files returns the files of the repository whose names end in suffix, by their slash-separated paths.
func files(t *testing.T, suffix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "dist"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, suffix):
			return nil
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// normalise drops what differs between a snippet and the same lines inside a function: indentation.
func normalise(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

var goSnippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// unfounded returns the Go snippets of text that no example contains, line by line.
func unfounded(text string, examples map[string]string) (missing []string, total int) {
	for _, m := range goSnippet.FindAllStringSubmatch(text, -1) {
		total++
		found := false
		for _, example := range examples {
			found = found || strings.Contains(normalise(example), normalise(m[1]))
		}
		if !found {
			missing = append(missing, m[1])
		}
	}
	return missing, total
}

// program returns the whole program of a page, which TestANewcomerCanFollowTheReadmes of cmd/azconc runs.
func program(text string) string {
	for _, m := range goSnippet.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[1], "package main\n") {
			return m[1]
		}
	}
	return ""
}

func TestEveryGoSnippetIsPartOfAnExampleThatRuns(t *testing.T) {
	examples := map[string]string{}
	for name, text := range files(t, "_test.go") {
		if strings.HasPrefix(path.Base(name), "example") || strings.HasSuffix(name, "_example_test.go") {
			examples[name] = text
		}
	}
	first, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples["the first page"] = program(string(first))
	total := 0
	for name, text := range files(t, ".md") {
		missing, n := unfounded(text, examples)
		total += n
		for _, snippet := range missing {
			t.Errorf("%s: no example contains this snippet:\n%s", name, snippet)
		}
	}
	if total < 4 {
		t.Errorf("%d snippets were found, want those of README.md and of aztest at least", total)
	}
	if missing, _ := unfounded("```go\nerr := nobody.WroteThis()\n```", examples); len(missing) != 1 {
		t.Error("a snippet that stands nowhere was not noticed")
	}
}

// TestANewcomerCanFollowTheReadmes of cmd/azconc runs the shell snippets of two files; those of a third run tests.
func TestNoOtherReadmeHasShellSnippets(t *testing.T) {
	run := []string{"README.md", "cmd/azconc/README.md", "pkg/aztest/explore/README.md"}
	for name, text := range files(t, "README.md") {
		if strings.Contains(text, "```sh\n") && !slices.Contains(run, name) {
			t.Errorf("%s has shell snippets, which no test runs", name)
		}
	}
}

var (
	link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	code = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
)

func TestEveryLinkLeadsToAFile(t *testing.T) {
	for name, text := range files(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			target := path.Join(path.Dir(name), m[1])
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			}
		}
	}
}

// A newcomer reads one page. What is longer belongs into the README of a package.
func TestTheFirstPageIsShort(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if lines, words := strings.Count(string(data), "\n"), len(strings.Fields(string(data))); lines > 130 || words > 900 {
		t.Errorf("README.md has %d lines and %d words, want at most 130 and 900", lines, words)
	}
}
