package root

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// golden compares got with the file testdata/name, or rewrites the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("this differs from %s, which users rely on (-want +got):\n%s\nIf the change is meant, rewrite the file with: go test ./cmd/azconc/internal/cli/root -run '^%s$' -update",
			path, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")), strings.Split(t.Name(), "/")[0])
	}
}

// commands lists every command of the tree, help topics included, parents first.
func commands() []*cobra.Command {
	s, _, _, _ := cli.TestStreams()
	f := cli.NewFactory(s, nil)
	defer f.Close()
	var all []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		all = append(all, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCmd(f))
	return all
}

var tree = sync.OnceValue(func() *cobra.Command { return commands()[0] })

// finding is locked while a command is found: cobra then adds its parents' flags to it.
var finding sync.Mutex

// leaf finds the command that args run.
func leaf(args []string) *cobra.Command {
	finding.Lock()
	defer finding.Unlock()
	cmd, _, err := tree().Find(args)
	if err != nil {
		return nil
	}
	return cmd
}

// TestGoldenHelp compares the help of every command, one file for each command under azconc and one for azconc itself with its
// topics.
func TestGoldenHelp(t *testing.T) {
	files := map[string]*bytes.Buffer{}
	for _, c := range commands() {
		words := strings.Fields(c.CommandPath())[1:]
		name := "azconc"
		if len(words) > 0 && !c.IsAdditionalHelpTopicCommand() {
			name = words[0]
		}
		r := runOn(t.Context(), silent(t), nil, nil, append([]string{"help"}, words...)...)
		if r.code != 0 || r.stderr != "" {
			t.Fatalf("azconc help %s: exit %d, %s", strings.Join(words, " "), r.code, r.stderr)
		}
		if files[name] == nil {
			files[name] = new(bytes.Buffer)
		}
		files[name].WriteString("$ azconc " + strings.Join(append([]string{"help"}, words...), " ") + "\n" + r.out + "\n")
	}
	for name, text := range files {
		golden(t, filepath.Join("help", name+".txt"), text.Bytes())
	}
	checkNoOther(t, "help", func(name string) bool { return files[strings.TrimSuffix(name, ".txt")] != nil })
}

// checkNoOther finds golden files of a folder that no test compares any more.
func checkNoOther(t *testing.T, folder string, known func(string) bool) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("testdata", folder))
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(entries, func(e os.DirEntry) bool { return !known(e.Name()) }); i >= 0 {
		t.Errorf("testdata/%s/%s is compared with nothing: remove it", folder, entries[i].Name())
	}
}
