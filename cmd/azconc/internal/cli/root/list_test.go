package root

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestSharesAndFilesAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		do := func(args ...string) ran {
			t.Helper()
			return runOn(t.Context(), s, func(s *cli.Streams) { s.In = strings.NewReader("x") }, allServices, args...)
		}
		for _, name := range []string{"reports", "logs"} {
			if r := do("share", "create", name); r.code != 0 {
				t.Fatal(r)
			}
		}
		if _, err := s.Share("reports").NewDirectoryClient("m").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"z.txt", "a.txt", "m/b.txt"} {
			if r := do("file", "put", "reports/"+name, "--file", "-"); r.code != 0 {
				t.Fatal(r)
			}
		}
		for _, c := range []struct {
			line string
			code int
			want string
		}{
			{"share list", 0, "logs reports"},
			{"share list --prefix r", 0, "reports"},
			{"share list --max 1", 0, "logs"},
			{"file list reports", 0, "a.txt m/ z.txt"},
			{"file list reports/", 0, "a.txt m/ z.txt"},
			{"file list reports/m", 0, "b.txt"},
			{"file list reports --prefix z", 0, "z.txt"},
			{"file list reports --max 2", 0, "a.txt m/"},
			{"file list reports/none", 3, ""},
			{"file list none", 3, ""},
			{"file list Reports", 2, ""},
			{"file list reports --max -1", 2, ""},
		} {
			r := do(strings.Fields(c.line)...)
			if got := strings.Join(strings.Fields(r.out), " "); r.code != c.code || got != c.want {
				t.Errorf("azconc %s: exit %d, %q, want %d, %q (%s)", c.line, r.code, got, c.code, c.want, r.stderr)
			}
		}
		v := do("file", "list", "reports", "--max", "1", "-o", "json").json(t)
		entry, _ := v["entries"].([]any)
		if len(entry) != 1 || entry[0].(map[string]any)["type"] != "file" || entry[0].(map[string]any)["size"] != 1.0 || v["truncated"] != true {
			t.Errorf("%v", v)
		}
	})
}

// A line break in a blob's name made two rows of one. A name is printed as it can be given.
func TestANameThatCannotBePrintedIsOneRow(t *testing.T) {
	names := []string{"a\nb", "a\tb", "\u202eevil", `"a\nb"`, `"plain"`, "ordinary é name"}
	onAccount(t, "container create jobs\n", func(do func(...string) ran) {
		for _, name := range names {
			if r := do("blob", "put", "http://127.0.0.1:10000/devstoreaccount1/jobs/"+url.PathEscape(name), "--file", "-"); r.code != 0 {
				t.Fatal(name, r)
			}
		}
		for _, form := range [][]string{nil, {"-o", "tsv", "--query", "blobs[].name"}, {"-o", "tsv", "--query", "blobs[].[name, etag]"}} {
			r := do(append([]string{"blob", "list", "jobs"}, form...)...)
			lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
			if len(lines) != len(names) {
				t.Errorf("%q: %d rows of %d names: %q", form, len(lines), len(names), r.out)
				continue
			}
			for _, line := range lines {
				name, _, _ := strings.Cut(line, "\t")
				if strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
					t.Errorf("%q: %q has what cannot be printed", form, name)
				}
				var shown struct{ Resource string }
				if r := do("blob", "show", "jobs/"+name, "-o", "json"); r.code != 0 || json.Unmarshal([]byte(r.out), &shown) != nil || !slices.Contains(names, strings.TrimPrefix(shown.Resource, "jobs/")) {
					t.Errorf("%q: azconc blob show %q: %+v", form, "jobs/"+name, r)
				}
			}
		}
		if r := do("blob", "show", `jobs/"a\nb"`, "-o", "tsv", "--query", "resource"); r.out != "jobs/a\nb\n" {
			t.Errorf("one value: %q, want it as it is", r.out)
		}
	})
}
