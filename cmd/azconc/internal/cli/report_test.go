package cli_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/report"
)

type blob struct {
	Name   string            `json:"name"`
	Owner  string            `json:"owner,omitempty"`
	Size   int64             `json:"size"`
	Held   bool              `json:"held"`
	ETag   *string           `json:"etag"`
	Parts  []int             `json:"parts"`
	Labels map[string]string `json:"labels"`
}

type cost struct {
	Requests int `json:"requests"`
}

type listed struct {
	Outcome string `json:"outcome"`
	Blobs   []blob `json:"blobs"`
	cost
}

func (listed) Text(w io.Writer) { fmt.Fprintln(w, "text") }

type shown struct {
	Outcome string `json:"outcome"`
	Size    int64  `json:"size"`
	Held    bool   `json:"held"`
	Owner   string `json:"owner,omitempty"`
	Open    []blob `json:"open" rows:"-"`
}

type named struct {
	Outcome string   `json:"outcome"`
	Queues  []string `json:"queues"`
}

type entity struct{ Name string }

func (e entity) TableRow() map[string]any { return map[string]any{"key": e.Name, "n" + e.Name: 1} }

type entities struct {
	Entities []entity `json:"entities"`
}

// write returns what is printed for the flags: "-o FORM", "--query EXPRESSION" or both.
func write(t *testing.T, form, query string, result any) (out string, err error) {
	t.Helper()
	o, err := report.Parse(cmp.Or(form, report.Text), form != "", query)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = o.Write(&b, result)
	return b.String(), err
}

var (
	etag = `"0x1"`
	two  = listed{Outcome: "listed", Blobs: []blob{
		{Name: "a", Size: 12345678901, Held: true, ETag: &etag, Parts: []int{1, 2}, Labels: map[string]string{"k": "v"}},
		{Name: "b<&", Owner: "web-1", Size: 0},
	}, cost: cost{Requests: 1}}
	one  = shown{Outcome: "found", Size: 1 << 40, Open: []blob{{Name: "h"}}}
	none = listed{Outcome: "listed", Blobs: []blob{}}
)

const allOfTwo = `{"outcome":"listed","blobs":[{"name":"a","size":12345678901,"held":true,"etag":"\"0x1\"","parts":[1,2],"labels":{"k":"v"}},` +
	`{"name":"b<&","owner":"web-1","size":0,"held":false,"etag":null,"parts":null,"labels":null}],"requests":1}` + "\n"

func TestResultsInEveryForm(t *testing.T) {
	for _, c := range []struct {
		form, query string
		result      any
		want        string
	}{
		{"", "", two, "text\n"},
		{"text", "", two, "text\n"},
		{"json", "", two, allOfTwo},
		{"", "blobs[1]", two, `{"etag":null,"held":false,"labels":null,"name":"b<&","owner":"web-1","parts":null,"size":0}` + "\n"},
		{"", "blobs[].name", two, `["a","b<&"]` + "\n"},
		{"json", "nosuch", two, "null\n"},
		{"json", "blobs[0].size", two, "12345678901\n"},
		{"json", "{z: outcome, a: requests}", two, `{"a":1,"z":"listed"}` + "\n"},
		{"json", "blobs[].{size: size, \"a b\": name}", two, `[{"a b":"a","size":12345678901},{"a b":"b<&","size":0}]` + "\n"},
		{"json", "merge(blobs[1], {x: `1`})", two, `{"etag":null,"held":false,"labels":null,"name":"b<&","owner":"web-1","parts":null,"size":0,"x":1}` + "\n"},

		// Without a query the columns are those of the type, so that an owner that nobody has does not move the others.
		{"tsv", "", two, "a\t\t12345678901\ttrue\t\"0x1\"\t2\t\nb<&\tweb-1\t0\tfalse\t\t\t\n"},
		{"tsv", "", listed{Blobs: []blob{{Name: "a"}}}, "a\t\t0\tfalse\t\t\t\n"},
		{"tsv", "", one, "found\t1099511627776\tfalse\t\t1\n"},
		{"tsv", "", named{Outcome: "listed", Queues: []string{"a", "b"}}, "a\nb\n"},
		{"tsv", "", entities{Entities: []entity{{"a"}, {"b"}}}, "a\t1\t\nb\t\t1\n"},
		{"tsv", "", none, ""},
		{"tsv", "blobs[].name", two, "a\nb<&\n"},
		{"tsv", "blobs[].[name, owner, held]", two, "a\t\ttrue\nb<&\tweb-1\tfalse\n"},
		{"tsv", "blobs[].{n: name, o: owner, b: size}", two, "12345678901\ta\t\n0\tb<&\tweb-1\n"},
		{"tsv", "blobs[].held", two, "true\nfalse\n"},
		{"tsv", "[outcome, requests]", two, "listed\n1\n"},
		{"tsv", "{a: outcome, b: blobs}", two, "listed\t2\n"},
		{"tsv", "blobs[0].held", two, "true\n"},
		{"tsv", "blobs[0].etag", two, "\"0x1\"\n"},
		{"tsv", "blobs[1].etag", two, ""},
		{"tsv", "requests", two, "1\n"},
		{"tsv", "avg(blobs[].size)", listed{Blobs: []blob{{Size: 1}, {Size: 2}}}, "1.5\n"},

		{"table", "", two, "name  owner  size         held   etag\n----  -----  -----------  -----  -----\na            12345678901  true   \"0x1\"\nb<&   web-1  0            false\n"},
		{"table", "", one, "outcome  size           held\n-------  -------------  -----\nfound    1099511627776  false\n"},
		{"table", "", named{Queues: []string{"a", "bcd"}}, "queues\n------\na\nbcd\n"},
		{"table", "", entities{Entities: []entity{{"a"}, {"b"}}}, "key  na  nb\n---  --  --\na    1\nb        1\n"},
		{"table", "", none, ""},
		{"table", "blobs[].{Owner: owner, Name: name}", two, "Name  Owner\n----  -----\na\nb<&   web-1\n"},
		{"table", "blobs[].name", two, "Result\n------\na\nb<&\n"},
		{"table", "blobs[].[name, size]", two, "Column1  Column2\n-------  -----------\na        12345678901\nb<&      0\n"},
		{"table", "nosuch", two, ""},
	} {
		got, err := write(t, c.form, c.query, c.result)
		if err != nil || got != c.want {
			t.Errorf("-o %s --query %s: %q, %v, want %q", c.form, c.query, got, err, c.want)
		}
	}
}

// What other writers store must not reach a terminal as a command to it, nor break the lines of a table.
func TestATableHasNoControlCharacters(t *testing.T) {
	evil := listed{Blobs: []blob{{Name: "a\x1b[2Jb\u009b31m\r\n\tc", Owner: "é世"}}}
	got, err := write(t, "table", "", evil)
	if err != nil || strings.ContainsAny(got, "\x1b\r\t\u009b") || strings.Count(got, "\n") != 3 || !strings.Contains(got, "é世") {
		t.Errorf("%q, %v", got, err)
	}
	got, err = write(t, "table", "blobs[].{\"\x1b]0;x\a\": name}", evil)
	if err == nil && strings.Contains(got, "\x1b") {
		t.Errorf("a heading: %q", got)
	}
}

// A number is written as JSON writes it, an integer as such.
func TestLargeNumbersAreWrittenAsJSON(t *testing.T) {
	result := map[string]any{"m": 1e21, "k": 1 << 53}
	for query, want := range map[string]string{"m": "1e+21", "k": "9007199254740992"} {
		for _, form := range []string{"json", "tsv"} {
			if got, err := write(t, form, query, result); err != nil || got != want+"\n" {
				t.Errorf("-o %s %s: %q, %v, want %s", form, query, got, err, want)
			}
		}
	}
}

func TestBadFormsAndQueriesAreRefused(t *testing.T) {
	for _, c := range []struct{ form, query, want string }{
		{"yaml", "", `--output "yaml" is none of text, json, table and tsv`},
		{"text", "etag", "--query does not apply to -o text"},
		{"json", "blobs[", "--query 'blobs[' is not an expression: "},
		{"json", "blobs[].nam e", "is not an expression"},
		{"json", "é.#", "is not an expression"},
		{"json", "a.'x", "is not an expression"},
		{"json", "lenth(blobs)", "--query 'lenth(blobs)' is not an expression: unknown function: lenth"},
		{"json", "length()", "is not an expression"},
		{"json", "not_null()", "is not an expression"},
		{"json", "join(',', [a, b], c)", "is not an expression"},
	} {
		_, err := write(t, c.form, c.query, two)
		if fail.Judge(err).Code != fail.ExitUsage || !strings.Contains(err.Error(), c.want) || fail.HintOf(err) == "" {
			t.Errorf("-o %s --query %s: %v (hint %q), want a usage error about %q", c.form, c.query, err, fail.HintOf(err), c.want)
		}
	}
	for _, query := range []string{"blobs[?contains(name, '(,')].name", "join(',', blobs[].name)", "sort_by(blobs, &size)[0].name", "merge({a: `1`}, {b: `{\"c\":[1,2]}`}, {d: \"outcome\"})", "not_null(a, b, outcome)"} {
		if _, err := write(t, "json", query, two); err != nil {
			t.Errorf("--query %s: %v", query, err)
		}
	}
}

// A query that does not fit the result fails after the command has done its work, and says so.
func TestAQueryThatDoesNotFit(t *testing.T) {
	_, err := write(t, "json", "length(outcome.x)", two)
	if fail.Judge(err).Code != fail.ExitFailed || strings.Contains(err.Error(), "jmespath") ||
		!strings.Contains(err.Error(), "; the command itself has succeeded") {
		t.Error(err)
	}
}

func FuzzQuery(f *testing.F) {
	for _, query := range []string{"blobs[].name", "{a: outcome}", "blobs[?size > `1`] | [0]", "join(',', blobs[].name)", "a.'x", "\"\\u00\"", "&x", "[::0]"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if query == "" {
			return
		}
		for _, form := range []string{"json", "table", "tsv"} {
			_, _ = write(t, form, query, two) // does not panic
		}
	})
}
