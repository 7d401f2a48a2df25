package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// row is a row of the article's tables: an operation, with the behaviour of a service.
type row struct {
	Operation  string
	ETag       bool   // its response has an ETag
	Conditions bool   // a condition on the version has an effect
	Lease      string // "required" by an active lease, "checked" if one is given, "ignored"
}

func (r row) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s |", r.Operation, yes(r.ETag), yes(r.Conditions), r.Lease)
}

// article are the tables of "Managing concurrency in Azure Storage" for blobs and containers: whether an operation
// returns an ETag and accepts conditional headers. The article does not list lease operations one by one.
var article = []row{
	{"Put Blob", true, true, ""},
	{"Get Blob", true, true, ""},
	{"Get Blob Properties", true, true, ""},
	{"Set Blob Properties", true, true, ""},
	{"Get Blob Metadata", true, true, ""},
	{"Set Blob Metadata", true, true, ""},
	{"Lease Blob", true, true, ""},
	{"Snapshot Blob", true, true, ""},
	{"Copy Blob", true, true, ""},
	{"Abort Copy Blob", false, false, ""},
	{"Delete Blob", false, true, ""},
	{"Put Block", false, false, ""},
	{"Put Block List", true, true, ""},
	{"Get Block List", true, false, ""},
	{"Put Page", true, true, ""},
	{"Get Page Ranges", true, true, ""},
	{"Create Container", true, false, ""},
	{"Get Container Properties", true, false, ""},
	{"Get Container Metadata", true, false, ""},
	{"Set Container Metadata", true, true, ""},
	{"Get Container ACL", true, false, ""},
	{"Set Container ACL", true, true, ""},
	{"Delete Container", false, true, ""},
	{"Lease Container", true, true, ""},
	{"List Blobs", false, false, ""},
}

// rowsOf runs every operation in the article's tables, and returns the rows in their order.
func rowsOf(t *testing.T, h harness) []row {
	byName := map[string]row{}
	for section, onVersion := range map[string]string{"blob": "If-Match: another", "container": "If-Modified-Since: its time"} {
		s := newStage(t, h, section)
		for _, op := range operations(section) {
			if !slices.ContainsFunc(article, func(r row) bool { return r.Operation == op.name }) {
				continue
			}
			refused := func(name string) bool {
				c := conditions[slices.IndexFunc(conditions, func(c condition) bool { return c.name == name })]
				w, step := s.set(t, op, c)
				return w.do(t, step) != success
			}
			w, step := s.set(t, op, condition{})
			byName[op.name] = row{op.name, w.send(t, step).header.Get("ETag") != "", refused(onVersion), leaseWord(refused)}
		}
	}
	// Metadata come with the properties, and a container has nothing before it is created.
	byName["Get Blob Metadata"] = byName["Get Blob Properties"]
	byName["Get Container Metadata"] = byName["Get Container Properties"]
	byName["Create Container"] = row{ETag: inContainer(t, h).head(t, ".").Get("ETag") != "", Lease: "ignored"}
	byName["Abort Copy Blob"] = abortRow(t, h)
	var rows []row
	for _, a := range article {
		row := byName[a.Operation]
		row.Operation = a.Operation
		rows = append(rows, row)
	}
	return rows
}

func leaseWord(refused func(condition string) bool) string {
	switch {
	case refused("leased, no id"):
		return "required"
	case refused("leased, another id"):
		return "checked"
	}
	return "ignored"
}

// abortRow uses a copy id that does not exist: the service checks the lease before the pending copy.
func abortRow(t *testing.T, h harness) row {
	w := inContainer(t, h)
	w.ask(t, "put free old")
	w.ask(t, "put held old")
	w.ask(t, "acquire held A 60")
	const abort = "?comp=copy&copyid=11111111-1111-4111-8111-111111111111 | x-ms-copy-action: abort"
	row := row{Lease: "ignored"}
	if free, held := w.do(t, "PUT free"+abort), w.do(t, "PUT held"+abort); held == "412 LeaseIdMissing" && strings.HasPrefix(string(free), "409") {
		row.Lease = "required"
	}
	return row
}

// markdown formats rows as a table.
func markdown(rows []row) string {
	var b strings.Builder
	b.WriteString("| operation | returns an ETag | takes conditions on the version | a lease is |\n|---|---|---|---|\n")
	for _, r := range rows {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}

// articleEntities is the article's table of operations on entities: whether an operation returns an ETag, and whether
// it accepts (and requires) If-Match.
var articleEntities = []row{
	{"Query Entities", true, false, ""},
	{"Insert Entity", true, false, ""},
	{"Update Entity", true, true, ""},
	{"Merge Entity", true, true, ""},
	{"Delete Entity", false, true, ""},
	{"Insert Or Replace Entity", true, false, ""},
	{"Insert Or Merge Entity", true, false, ""},
}

// entityRows runs every operation on entities. An Insert Or Replace with If-Match would be an Update: they differ in nothing else.
func entityRows(t *testing.T, h harness) (all []row) {
	w := inTables(t, h)
	steps := []string{"entity x", "insert x", `update x "n":1 | If-Match: *`, `merge x "n":1 | If-Match: *`, "remove x | If-Match: *", `update x "n":1`, `merge x "n":1`}
	for i, a := range articleEntities {
		ask := func(kind, headers string) answer {
			x := fmt.Sprint(kind, i)
			if a.Operation != "Insert Entity" {
				w.ask(t, "insert "+x)
			}
			return w.send(t, named(steps[i]+headers, x))
		}
		plain, refused := ask("plain", ""), false
		if !strings.HasPrefix(a.Operation, "Insert Or") {
			refused = ask("stale", ` | If-Match: W/"datetime'2020-01-01T00%3A00%3A00.0000000Z'"`).said != success
		}
		if plain.said != success {
			t.Errorf("%s: %s", a.Operation, plain.said)
		}
		all = append(all, row{Operation: a.Operation, ETag: plain.header.Get("ETag") != "", Conditions: refused})
	}
	return all
}

// markdownEntities formats rows of operations on entities as a table.
func markdownEntities(rows []row) string {
	var b strings.Builder
	b.WriteString("| operation | returns an ETag | takes If-Match |\n|---|---|---|\n")
	for _, r := range rows {
		b.WriteString("| " + r.Operation + " | " + yes(r.ETag) + " | " + yes(r.Conditions) + " |\n")
	}
	return b.String()
}
