//go:build unix && !race

// Every command with a result, which takes ten times as long with the race detector: scripts/test runs this file without it.

package root

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/queue"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pkg/aztest"
)

// forms returns a value as a script gets it: as -o tsv and as -o json print it, with and without the end of the line.
func forms(t *testing.T, value string) []string {
	t.Helper()
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return []string{value, value + "\n", string(quoted), string(quoted) + "\n"}
}

// TestEveryFlagTakesWhatIsPrinted walks the flags that take an ETag, a time, or an id that the service gives or compares. --if-match
// refused the ETag that --query prints.
func TestEveryFlagTakesWhatIsPrinted(t *testing.T) {
	seen := map[string]bool{}
	eachFlag(func(cmd *cobra.Command, f *pflag.Flag) {
		what, _ := pflag.UnquoteUsage(f)
		value := map[string]string{"ETag": `"0x8D"`, "etag": `"0x8D"`, "time": "2026-01-31T12:00:05Z", "receipt": "AgAAAAMAAAAAAAAA+/4="}[what]
		switch {
		case f.Name == "lease-id", f.Name == "to" && strings.Contains(cmd.CommandPath(), " lease "):
			value = "1f812371-a41d-49e6-b123-f4b542e851c5"
		case f.Name == "at": // which the user chooses
			return
		case strings.HasPrefix(cmd.CommandPath(), "azconc table ") && strings.EqualFold(what, "etag"):
			value = `W/"datetime'2026-01-31T12%3A00%3A05.1234567Z'"`
		}
		if value == "" {
			return
		}
		seen[f.Name] = true
		for _, form := range forms(t, value) {
			if err := f.Value.Set(form); err != nil {
				t.Errorf("%s --%s %q: %v", cmd.CommandPath(), f.Name, form, err)
			}
		}
	})
	for _, name := range []string{
		"if-match", "if-none-match", "source-if-match", "source-if-none-match", "if-modified-since", "if-unmodified-since",
		"source-if-modified-since", "source-if-unmodified-since", "lease-id", "to", "pop-receipt",
	} {
		if !seen[name] {
			t.Errorf("no --%s is seen", name)
		}
	}
}

// taken says for a member of a result what takes its value, by its name and the noun of the command.
func taken(member, noun, value string) func(text string) (string, error) {
	text := func(v fmt.Stringer, err error) (string, error) { return v.String(), err }
	switch member[strings.LastIndex(member, ".")+1:] {
	case "etag", "base_etag", "current_etag":
		parse := flags.ParseETag
		if strings.HasPrefix(value, "W/") {
			parse = flags.ParseTableETag
		}
		return func(text string) (string, error) {
			etag, err := parse("--if-match", text)
			return string(etag), err
		}
	case "lease_id":
		return flags.ParseLeaseID
	case "pop_receipt", "message_id", "copy_id":
		return func(text string) (string, error) { return flags.ParseID("the id", text) }
	case "last_modified", "creation_time", "created", "since", "inserted", "expires", "next_visible":
		return func(given string) (string, error) { return text(flags.ParseTime("--if-modified-since", given)) }
	case "resource":
		return func(given string) (string, error) {
			given = strings.TrimSuffix(given, "\n") // which the shell removes
			switch noun {
			case "container":
				return text(ref.ParseContainer(given))
			case "blob", "lock", "counter":
				if strings.Contains(value, "/") {
					return text(ref.ParseBlob(given))
				}
				return text(ref.ParseContainer(given))
			case "table":
				return text(ref.ParseTable(given, strings.Count(value, "/")+1))
			case "share", "file":
				return text(ref.ParseShareOrFile(given))
			}
			return queue.ParseName(given)
		}
	}
	return nil
}

// eachText calls visit for each text in a result, with the names that lead to it.
func eachText(name string, v any, visit func(name, value string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			eachText(name+"."+key, value, visit)
		}
	case []any:
		for _, value := range v {
			eachText(name, value, visit)
		}
	case string:
		visit(name, v)
	}
}

// TestWhatACommandPrintsIsTaken runs the transcripts of all commands, and takes each ETag, id, receipt, time and name of a resource
// that they print.
func TestWhatACommandPrintsIsTaken(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "results", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]string{"blob.txt", "container.txt", "counter.txt", "file.txt", "queue.txt", "table.txt"}, filepath.Base(file)) {
			continue // what they print is printed by others, too
		}
		synctest.Test(t, func(t *testing.T) {
			tr := &transcript{service: aztest.New(nil), dir: t.TempDir(), ran: map[string]bool{}}
			tr.vars = map[string]string{"DIR": tr.dir}
			tr.after = func(args []string, _ string, r ran) {
				var printed any
				if r.code != 0 || json.Unmarshal([]byte(r.out), &printed) != nil {
					return
				}
				eachText("", printed, func(name, value string) {
					parse := taken(name, args[0], value)
					if parse == nil || value == "" || args[0] == "queue" && strings.ContainsAny(value, "/(") { // a message, or all queues
						return
					}
					seen[name] = true
					want, err := parse(value)
					for _, form := range forms(t, value) {
						if got, e := parse(form); err != nil || e != nil || got != want {
							t.Errorf("azconc %q prints %s %q: %q, %v, want %q, %v", args, name, form, got, e, want, err)
						}
					}
				})
			}
			for _, step := range strings.Split(strings.TrimSpace(string(script)), "\n\n") {
				tr.step(t, step)
			}
		})
	}
	for _, name := range []string{".etag", ".base_etag", ".blobs.etag", ".lease_id", ".pop_receipt", ".messages.pop_receipt", ".message_id", ".copy_id", ".last_modified", ".resource", ".entities.etag"} {
		if !seen[name] {
			t.Errorf("no command prints %s", name)
		}
	}
}
