package root

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// TestABadDocumentIsAUsageError covers every verb that reads a JSON document, with what people get wrong in them.
func TestABadDocumentIsAUsageError(t *testing.T) {
	wire := transport(func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s %s was sent", r.Method, r.URL.Path)
		return nil, http.ErrHandlerTimeout
	})
	goNames := regexp.MustCompile(`Go |struct|json:|cli\.|optimistic\.|unmarshal|nothing was written`)
	for _, c := range []struct{ args, document, want string }{
		{"table insert jobs/eu/17", `{"n": {"a": 1}}`, "a property holds a single value"},
		{"table insert jobs/eu/17", `[1]`, "cannot be of type array"},
		{"table insert jobs/eu/17", `{"n": 1`, "it is incomplete"},
		{"table insert jobs/eu/17", ``, "it is incomplete"},
		{"table insert jobs/eu/17", `{"n@odata.type": 5, "n": 1}`, "its type"},
		{"table upsert jobs/eu/17 --set n=1", `nope`, "not JSON"},
		{"table merge jobs/eu/17 --if-match * --set n=1", `[]`, "--set n"},
		{"table transact jobs/eu", `{"op": "insert", "row": 5, "entity": {}}`, `"row" cannot be of type number`},
		{"table transact jobs/eu", `{"op": "insert", "rows": "5"}`, `unknown member "rows"`},
		{"table transact jobs/eu", `{"op": "insert", "row": "5", "entity": [1]}`, "object 1 of the file is not a write"},
		{"table transact jobs/eu", ``, "contains no write"},
		{"container acl set jobs", `{"access": 5}`, `"access" cannot be of type number`},
		{"container acl set jobs", `{"access": "blob"} {}`, "more than one JSON value"},
		{"container acl set jobs", `{"access": "everybody"}`, `access "everybody" is neither`},
		{"container acl set jobs", `{"policies": [{"id": "a", "start": "soon"}]}`, `policy "a": start "soon" is not a time`},
		{"queue acl set orders", `{"policies": [{"id": "a", "expiry": "soon"}]}`, "hint: a time looks like 2026-01-31T12:00:05Z"},
		{"table transact jobs/eu", `{"op": "expect", "row": "5", "entity": {}}`, "object 1 of the file expects no value"},
		{"table transact jobs/eu", `{"op": "expect", "row": "5", "entity": {"n": 1, "m": null}}`, "object 1 of the file expects a null"},
		{"table insert jobs/eu/17", "\xef\xbb\xbf{}", "it begins with a byte order mark, in UTF-8"},
		{"table merge jobs/eu/17 --if-match * --set n=1", "\xef\xbb\xbf{}", "it begins with a byte order mark, in UTF-8"},
		{"table transact jobs/eu", "\xff\xfe{\x00}\x00", "it begins with a byte order mark, in UTF-16"},
		{"container acl set jobs", "\xef\xbb\xbf{}", "it begins with a byte order mark, in UTF-8"},
		{"table insert jobs/eu/17", `{"n": 1, "RowKey": "18"}`, `the properties have the RowKey "18"`},
		{"table upsert jobs/eu/17", `{"PartitionKey": "us"}`, `the properties have the PartitionKey "us"`},
		{"table merge jobs/eu/17 --if-match *", `{"n@odata.type": "Edm.Int32", "n": 1, "RowKey": "x"}`, `the properties have the RowKey "x"`},
		{"table replace jobs/eu/17 --if-match *", `{"RowKey": "x"}`, `the properties have the RowKey "x"`},
		{"queue acl set orders", `{`, "it is incomplete"},
		{"queue properties set", `{"logging": 1}`, "cannot be of type number"},
	} {
		stdin := func(s *cli.Streams) { s.In = strings.NewReader(c.document) }
		r := runOn(t.Context(), wire, stdin, nil, append(strings.Fields(c.args), "--file", "-")...)
		if r.code != fail.ExitUsage || r.out != "" || !strings.Contains(r.stderr, c.want) || goNames.MatchString(r.stderr) {
			t.Errorf("%s on %s: exit %d, %q, want 2 and %q, without Go's names", c.args, c.document, r.code, r.stderr, c.want)
		}
	}
}
