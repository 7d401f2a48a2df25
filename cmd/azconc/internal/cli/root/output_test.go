package root

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

// onAccount runs setup, one command a line, and then test with a function that runs a command.
func onAccount(t *testing.T, setup string, test func(do func(command ...string) ran)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		do := func(command ...string) ran {
			t.Helper()
			return runOn(t.Context(), s, func(s *cli.Streams) { s.In = strings.NewReader(`{"n":1}`) }, allServices, command...)
		}
		for line := range strings.Lines(setup) {
			if r := do(strings.Fields(line)...); r.code != 0 {
				t.Fatal(line, r)
			}
		}
		test(do)
	})
}

const somethingOfEach = `container create jobs
container create logs
blob put jobs/a --file - --metadata team=x
blob put jobs/b --file -
blob page create jobs/p --size 1024
counter create jobs/visits --shards 2
queue create orders
queue send orders --file - --id one
queue send orders --file -
table create jobs
table insert jobs/eu/1 --set n=5 --set s=hi
table insert jobs/eu/2 --set n=7 --set other=true
share create reports
file put reports/a.csv --file -
`

// A table and TSV are made of what -o json prints. A column of a table has the name by which --query knows it.
func TestTablesAndTSVShowTheMembersOfTheJSON(t *testing.T) {
	onAccount(t, somethingOfEach, func(do func(...string) ran) {
		for line, list := range map[string]string{
			"blob list jobs": "blobs", "blob show jobs/a": "", "blob page ranges jobs/p": "ranges", "blob block list jobs/a": "blocks", "blob metadata show jobs/a": "",
			"blob tags show jobs/a": "", "blob lease show jobs/a": "", "container list": "containers", "container show jobs": "",
			"container acl show jobs": "", "container metadata show jobs": "", "counter get jobs/visits": "", "queue list": "queues", "queue show orders": "", "queue peek orders --max 5": "messages",
			"queue metadata show orders": "", "queue acl show orders": "", "queue properties show": "", "table list": "tables", "share list": "shares", "share show reports": "",
			"file list reports": "entries", "file show reports/a.csv": "", "file handles list reports/a.csv": "handles",
			"lock list jobs": "locks", "once list jobs": "keys", "doctor": "checks", "version": "",
		} {
			command := strings.Fields(line)
			whole := do(append(command, "-o", "json")...)
			var rows []map[string]any
			var scalars []any
			object := whole.json(t)
			if list == "" {
				rows = append(rows, object)
			} else {
				elements, there := object[list].([]any)
				if !there {
					t.Errorf("azconc %s: no list %s in %s", line, list, whole.out)
				}
				for _, e := range elements {
					if row, ok := e.(map[string]any); ok {
						rows = append(rows, row)
					} else {
						scalars = append(scalars, e)
					}
				}
			}
			table, tsv := do(append(command, "-o", "table")...), do(append(command, "-o", "tsv")...)
			if whole.code != 0 || table.code != 0 || tsv.code != 0 {
				t.Errorf("azconc %s: %+v %+v %+v", line, whole, table, tsv)
			}
			n := len(rows) + len(scalars)
			lines := strings.Split(strings.TrimSuffix(table.out, "\n"), "\n")
			if n == 0 {
				if table.out != "" || tsv.out != "" {
					t.Errorf("azconc %s: %q and %q of nothing", line, table.out, tsv.out)
				}
				continue
			}
			if len(lines) != n+2 || strings.Count(tsv.out, "\n") != n {
				t.Errorf("azconc %s: %q and %q, want %d rows", line, table.out, tsv.out, n)
			}
			for heading := range strings.FieldsSeq(lines[0]) {
				if known := slices.ContainsFunc(rows, func(row map[string]any) bool { return row[heading] != nil }); !known && heading != list {
					t.Errorf("azconc %s -o table: %s is no member of %s", line, heading, whole.out)
				}
			}
			tabs := -1
			for row := range strings.Lines(tsv.out) {
				if n := strings.Count(row, "\t"); tabs >= 0 && n != tabs {
					t.Errorf("azconc %s -o tsv: %q has rows of different lengths", line, tsv.out)
				} else {
					tabs = n
				}
			}
		}
	})
}

func TestOutputOfCommands(t *testing.T) {
	onAccount(t, somethingOfEach, func(do func(...string) ran) {
		for _, c := range []struct {
			command string
			code    int
			out     string
			stderr  string
		}{
			{"table query jobs -o tsv --query entities[].entity.n", 0, "5\n7\n", ""},
			{"table query jobs --query entities[?entity.n>`5`].row_key|[0]", 0, "\"2\"\n", ""},
			{"table get jobs/eu/1 --query entity", 0, `{"n":5,"s":"hi"}` + "\n", ""},
			{"blob list jobs --prefix p --query blobs[].name -o tsv", 0, "p\n", ""},
			{"blob list jobs --query nosuch -o tsv", 0, "", ""},
			{"blob list jobs --query nosuch", 0, "null\n", ""},
			{"blob list jobs -q --query [].name", 0, "", ""},
			{"counter get jobs/visits --query value -o tsv", 0, "0\n", ""},
			// The exit code is the same in every form. What is read as a result is printed only if there is one.
			{"blob show jobs/none -o table", 3, "", "not found"},
			{"blob show jobs/none -o tsv --query etag", 3, "", "not found"},
			{"blob show jobs/none --query outcome", 3, "\"not_found\"\n", "not found"},
			{"blob show jobs/none --query length(etag)", 3, "null\n", "not found"},
			{"blob put jobs/a --file - --if-none-match * -o tsv", 7, "", "exists"},
			{"blob show jobs/a --query length(size)", 1, "null\n", "the command itself has succeeded"},
			// The other forms do not mix with content or the output of a command, either.
			{"blob get jobs/a -o table", 2, "", "-o table and the content cannot both go to stdout"},
			{"blob get jobs/a --query etag", 2, "", "--query and the content cannot both go to stdout"},
			{"lock run jobs/l -o tsv -- true", 2, "", "-o tsv does not apply to azconc lock run, which prints text"},
			{"completion bash --query x", 2, "", "--query does not apply to azconc completion, which prints text"},
			{"help -o table", 2, "", "-o table does not apply to azconc help"},
		} {
			r := do(strings.Fields(c.command)...)
			if r.code != c.code || r.out != c.out && c.code != fail.ExitUsage || !strings.Contains(r.stderr, c.stderr) || c.stderr == "" && r.stderr != "" {
				t.Errorf("azconc %s: %d %q %q, want %d %q %q", c.command, r.code, r.out, r.stderr, c.code, c.out, c.stderr)
			}
		}
	})
}

func TestABadQuerySendsNothing(t *testing.T) {
	for _, query := range []string{"blobs[", "a b", "nosuch(blobs)", "length()", ""} {
		r := runOn(t.Context(), silent(t), nil, nil, "blob", "delete", "jobs/a", "--query", query)
		if r.code != fail.ExitUsage || r.out != "" || !strings.Contains(r.stderr, "--query") || !strings.Contains(r.stderr, "azconc: hint: ") {
			t.Errorf("--query %q: %+v", query, r)
		}
	}
}

// The id of a lease that may be held is for a script to release it, in every form.
func TestTheIDOfALeaseThatMayBeHeldIsPrintedInEveryForm(t *testing.T) {
	for _, form := range []string{"-o text", "-o tsv --query lease_id", "-o table --query {id:lease_id}", "-o json --query lease_id"} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			if r := runOn(t.Context(), s, nil, nil, "container", "create", "jobs"); r.code != 0 {
				t.Fatal(r)
			}
			s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: func(r *aztest.Request) bool { return r.Method == "PUT" }})
			const id = "1f812371-a41d-49e6-b123-f4b542e851c5"
			r := runOn(t.Context(), s, nil, nil, append(strings.Fields("container lease acquire jobs --timeout 5m --lease-id "+id), strings.Fields(form)...)...)
			if r.code != fail.ExitUnknown || !strings.Contains(r.out, id) {
				t.Errorf("%s: exit %d, %q %q", form, r.code, r.out, r.stderr)
			}
		})
	}
}

// What other writers have stored does not reach a terminal as a command to it, in any form.
func TestNoFormSendsControlCharactersToATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		const name = "x\u009b31my"
		if _, err := s.BlockBlob("jobs", name).UploadBuffer(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		for _, terminal := range []bool{false, true} {
			for _, form := range []string{"text", "json", "table", "tsv"} {
				r := runOn(t.Context(), s, func(s *cli.Streams) { s.OutTerminal = terminal }, nil, "blob", "list", "jobs", "-o", form)
				raw := strings.Contains(r.out, "\u009b")
				if want := !terminal && form == "json"; r.code != 0 || raw != want {
					t.Errorf("terminal %v, -o %s: %q", terminal, form, r.out)
				}
				if form == "json" && !json.Valid([]byte(r.out)) {
					t.Errorf("%q is no JSON", r.out)
				}
			}
		}
	})
}
