package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/azerr"
)

// Table tests tables, entities and entity group transactions: which operations accept an ETag, how they refuse a stale
// one, which types come back, and that a transaction is all or nothing.
func Table(t T, h Harness) {
	t.Run("tables", func(t T) { tables(t, h) })
	t.Run("conditions", func(t T) { entityConditions(t, h) })
	t.Run("versions", func(t T) { entityVersions(t, h) })
	t.Run("types", func(t T) { entityTypes(t, h) })
	t.Run("limits", func(t T) { entityLimits(t, h) })
	t.Run("queries", func(t T) { entityQueries(t, h) })
	t.Run("transactions", func(t T) { transactions(t, h) })
	t.Run("contention", func(t T) { entityContention(t, h) })
}

func (h Harness) table(t T) *aztables.Client {
	service, name := h.Tables(t)
	return service.NewClient(name)
}

func (h Harness) check(t T, e expect, question string, got said) {
	t.Helper()
	e.check(t, h, question, got)
}

// respond is call for the Table service, whose transactions fail inside a success.
func respond(run func(context.Context) error) said {
	var err error
	answer := call(func(ctx context.Context) error { err = run(ctx); return err })
	if index, code, ok := azerr.Transaction(err); ok {
		return said(fmt.Sprintf("%d %s at %d", azerr.Classify(err).Status, code, index))
	}
	return answer
}

func tables(t T, h Harness) {
	service, name := h.Tables(t)
	create := func(name string) said {
		return respond(func(ctx context.Context) error { _, err := service.CreateTable(ctx, name, nil); return err })
	}
	remove := func(name string) said {
		return respond(func(ctx context.Context) error { _, err := service.DeleteTable(ctx, name, nil); return err })
	}
	h.check(t, expect{service: "409 TableAlreadyExists"}, "create again", create(name))
	h.check(t, expect{service: "409 TableAlreadyExists"}, "create again in capitals", create(strings.ToUpper(name)))
	h.check(t, expect{service: "400 OutOfRangeInput", emulator: "400", why: "gives no code"}, "a name of two letters", create("tt"))
	h.check(t, expect{service: "400 InvalidResourceName", emulator: "400", why: "gives no code"}, "a name with a hyphen", create("a-table"))
	h.check(t, expect{service: "404 ResourceNotFound"}, "delete a missing entity", remove(name+"missing"))

	other := name + "other"
	h.check(t, expect{service: success}, "create", create(other))
	h.check(t, expect{service: success}, "delete", remove(other))
	h.check(t, expect{service: "409 TableBeingDeleted", emulator: success, why: "deletes at once"}, "create again at once", create(other))
	if !h.Emulator {
		insert := respond(func(ctx context.Context) error {
			_, err := service.NewClient(other).AddEntity(ctx, entity("p", "r", nil), nil)
			return err
		})
		h.check(t, expect{service: "409 TableBeingDeleted"}, "insert while it is being deleted", insert)
	}
	missing := respond(func(ctx context.Context) error {
		_, err := service.NewClient(name+"missing").AddEntity(ctx, entity("p", "r", nil), nil)
		return err
	})
	h.check(t, expect{service: "404 TableNotFound"}, "insert into no table", missing)

	filter := "TableName eq '" + name + "'"
	page, err := service.NewListTablesPager(&aztables.ListTablesOptions{Filter: &filter}).NextPage(t.Context())
	if err != nil || len(page.Tables) != 1 || *page.Tables[0].Name != name {
		t.Errorf("query tables: %+v, %v; want %s alone", page.Tables, err, name)
	}
}

// entity is an entity as JSON.
func entity(partition, row string, properties map[string]any) []byte {
	e := map[string]any{"PartitionKey": partition, "RowKey": row}
	for name, value := range properties {
		e[name] = value
	}
	data, err := json.Marshal(e)
	if err != nil {
		panic(err) // the suite's own constants
	}
	return data
}

// The writes of an entity, as calls with a condition; an empty ETag is none.
var writes = []struct {
	name string
	send func(context.Context, *aztables.Client, string, azcore.ETag) (azcore.ETag, error)
}{
	{"update", func(ctx context.Context, c *aztables.Client, row string, match azcore.ETag) (azcore.ETag, error) {
		r, err := c.UpdateEntity(ctx, entity("p", row, map[string]any{"n": 1}), &aztables.UpdateEntityOptions{IfMatch: &match, UpdateMode: aztables.UpdateModeReplace})
		return r.ETag, err
	}},
	{"merge", func(ctx context.Context, c *aztables.Client, row string, match azcore.ETag) (azcore.ETag, error) {
		r, err := c.UpdateEntity(ctx, entity("p", row, map[string]any{"n": 1}), &aztables.UpdateEntityOptions{IfMatch: &match, UpdateMode: aztables.UpdateModeMerge})
		return r.ETag, err
	}},
	{"delete", func(ctx context.Context, c *aztables.Client, row string, match azcore.ETag) (azcore.ETag, error) {
		_, err := c.DeleteEntity(ctx, "p", row, &aztables.DeleteEntityOptions{IfMatch: &match})
		return "", err
	}},
}

func entityConditions(t T, h Harness) {
	client := h.table(t)
	for _, w := range writes {
		t.Run(w.name, func(t T) {
			row := w.name
			try := func(match azcore.ETag) said {
				return respond(func(ctx context.Context) error { _, err := w.send(ctx, client, row, match); return err })
			}
			old := add(t, client, row)
			current := replace(t, client, row)
			h.check(t, expect{service: "412 UpdateConditionNotSatisfied"}, "an old ETag", try(old))
			bad := expect{service: "400 InvalidInput"}
			if w.name == "merge" {
				bad.emulator, bad.why = "400 InvalidOperation", "another code for merges"
			}
			h.check(t, bad, "a strong ETag", try(`"0x8D"`))
			h.check(t, expect{service: "400 InvalidInput", emulator: "412 UpdateConditionNotSatisfied", why: "takes it for a version"}, "an empty ETag", try(""))
			h.check(t, expect{service: success}, "the current ETag", try(current))
			if w.name != "delete" {
				h.check(t, expect{service: success}, "*", try("*"))
				return
			}
			h.check(t, expect{service: "404 ResourceNotFound"}, "* on a deleted entity", try("*"))
			h.check(t, expect{service: "404 ResourceNotFound"}, "the ETag of a deleted entity", try(current))
			add(t, client, row)
			h.check(t, expect{service: success}, "*", try("*"))
		})
	}
	for _, w := range writes[:2] {
		h.check(t, expect{service: "404 ResourceNotFound"}, w.name+" with * of a missing entity", respond(func(ctx context.Context) error {
			_, err := w.send(ctx, client, "missing", "*")
			return err
		}))
	}
	add(t, client, "twice")
	h.check(t, expect{service: "409 EntityAlreadyExists"}, "insert again", respond(func(ctx context.Context) error {
		_, err := client.AddEntity(ctx, entity("p", "twice", nil), nil)
		return err
	}))
	h.check(t, expect{service: "404 ResourceNotFound"}, "get a missing entity", respond(func(ctx context.Context) error {
		_, err := client.GetEntity(ctx, "p", "missing", nil)
		return err
	}))
}

func add(t T, client *aztables.Client, row string) azcore.ETag {
	t.Helper()
	r, err := client.AddEntity(t.Context(), entity("p", row, map[string]any{"kept": "yes", "n": 0}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.ETag
}

func replace(t T, client *aztables.Client, row string) azcore.ETag {
	t.Helper()
	r, err := client.UpsertEntity(t.Context(), entity("p", row, map[string]any{"kept": "yes", "n": 0}), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	if err != nil {
		t.Fatal(err)
	}
	return r.ETag
}

var weakETag = regexp.MustCompile(`^W/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'"$`)

func entityVersions(t T, h Harness) {
	client := h.table(t)
	seen := map[azcore.ETag]string{}
	note := func(what string, etag azcore.ETag, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !weakETag.MatchString(string(etag)) {
			t.Errorf("%s: the ETag is %s", what, etag)
		}
		if before, twice := seen[etag]; twice {
			t.Errorf("%s has the ETag of %s", what, before)
		}
		seen[etag] = what
	}
	note("insert", add(t, client, "v"), nil)
	for i := range 20 {
		for _, w := range writes[:2] {
			etag, err := w.send(t.Context(), client, "v", "*")
			note(fmt.Sprint(w.name, i), etag, err)
		}
		for _, mode := range []aztables.UpdateMode{aztables.UpdateModeMerge, aztables.UpdateModeReplace} {
			r, err := client.UpsertEntity(t.Context(), entity("p", "v", nil), &aztables.UpsertEntityOptions{UpdateMode: mode})
			note(fmt.Sprint("upsert", mode, i), r.ETag, err)
		}
	}
	last := replace(t, client, "v")
	got, err := client.GetEntity(t.Context(), "p", "v", nil)
	if err != nil || got.ETag != last {
		t.Errorf("get: ETag %s, %v; the write said %s", got.ETag, err, last)
	}

	// A merge keeps properties that a replacement drops.
	_, err = client.UpsertEntity(t.Context(), entity("p", "v", map[string]any{"n": 5}), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge})
	if kept := names(t, client, "v"); err != nil || kept != "kept n" {
		t.Errorf("after a merge: %s, %v", kept, err)
	}
	_, err = client.UpsertEntity(t.Context(), entity("p", "v", map[string]any{"n": nil}), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge})
	if kept := names(t, client, "v"); err != nil || kept != "kept n" {
		t.Errorf("after a merge of null: %s, %v", kept, err)
	}
	_, err = client.UpsertEntity(t.Context(), entity("p", "v", map[string]any{"n": 6}), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	if kept := names(t, client, "v"); err != nil || kept != "n" {
		t.Errorf("after a replacement: %s, %v", kept, err)
	}
}

// wire returns an entity's properties as the service wrote them, because the SDK's value has been through float64.
func wire(t T, client *aztables.Client, partition, row string, format aztables.MetadataFormat) map[string]json.RawMessage {
	t.Helper()
	var raw *http.Response
	if _, err := client.GetEntity(policy.WithCaptureResponse(t.Context(), &raw), partition, row, &aztables.GetEntityOptions{Format: &format}); err != nil {
		t.Fatal(err)
	}
	body, err := runtime.Payload(raw)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	return members
}

func names(t T, client *aztables.Client, row string) string {
	t.Helper()
	var all []string
	for _, name := range []string{"kept", "n"} {
		if v := wire(t, client, "p", row, aztables.MetadataFormatMinimal)[name]; v != nil {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

func entityTypes(t T, h Harness) {
	client := h.table(t)
	_, err := client.AddEntity(t.Context(), []byte(`{"PartitionKey":"p","RowKey":"types",
		"s":"it's <b>", "b":true, "i":-5, "d":2.5,
		"whole":3, "whole@odata.type":"Edm.Double", "nan":"NaN", "nan@odata.type":"Edm.Double",
		"long":"9007199254740993", "long@odata.type":"Edm.Int64",
		"at":"2024-02-29T12:00:00.1234567Z", "at@odata.type":"Edm.DateTime",
		"id":"c9da6455-213d-42c9-9a79-3e9149a57833", "id@odata.type":"Edm.Guid",
		"raw":"AAECAw==", "raw@odata.type":"Edm.Binary", "none":null}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"s": `"it's <b>"`, "b": `true`, "i": `-5`, "d": `2.5`, "whole": `3.0`, "nan": `"NaN"`, "nan@odata.type": `"Edm.Double"`,
		"long": `"9007199254740993"`, "long@odata.type": `"Edm.Int64"`,
		"at": `"2024-02-29T12:00:00.1234567Z"`, "at@odata.type": `"Edm.DateTime"`,
		"id": `"c9da6455-213d-42c9-9a79-3e9149a57833"`, "id@odata.type": `"Edm.Guid"`,
		"raw": `"AAECAw=="`, "raw@odata.type": `"Edm.Binary"`, "i@odata.type": ``, "none": ``,
	}
	minimal := wire(t, client, "p", "types", aztables.MetadataFormatMinimal)
	for name, value := range want {
		if got := string(minimal[name]); got != value {
			t.Errorf("%s: %s, want %s", name, got, value)
		}
	}
	if minimal["odata.etag"] == nil || minimal["odata.metadata"] == nil || minimal["odata.id"] != nil {
		t.Errorf("minimal metadata: %v", minimal)
	}
	none := wire(t, client, "p", "types", aztables.MetadataFormatNone)
	if none["odata.etag"] != nil || none["at@odata.type"] != nil || string(none["at"]) != want["at"] {
		t.Errorf("no metadata: %v", none)
	}
	full := wire(t, client, "p", "types", aztables.MetadataFormatFull)
	if full["odata.id"] == nil || full["odata.editLink"] == nil || string(full["Timestamp@odata.type"]) != `"Edm.DateTime"` {
		t.Errorf("full metadata: %v", full)
	}
	for _, bad := range []string{
		`"x":"1.5","x@odata.type":"Edm.Int64"`, `"x":"1500-01-01T00:00:00Z","x@odata.type":"Edm.DateTime"`, `"x":"zz","x@odata.type":"Edm.Guid"`,
	} {
		got := respond(func(ctx context.Context) error {
			_, err := client.AddEntity(ctx, []byte(`{"PartitionKey":"p","RowKey":"bad",`+bad+`}`), nil)
			return err
		})
		e := expect{service: "400 InvalidInput"}
		if strings.Contains(bad, "1500") || strings.Contains(bad, "1.5") || strings.Contains(bad, "zz") {
			e.emulator, e.why = success, "does not look"
		}
		h.check(t, e, bad, got)
		_, _ = client.DeleteEntity(t.Context(), "p", "bad", nil)
	}
}

func entityLimits(t T, h Harness) {
	client := h.table(t)
	insert := func(row string, properties map[string]any) said {
		return respond(func(ctx context.Context) error {
			_, err := client.AddEntity(ctx, entity("p", row, properties), nil)
			return err
		})
	}
	many := func(n int, value any) map[string]any {
		p := map[string]any{}
		for i := range n {
			p[fmt.Sprintf("p%03d", i)] = value
		}
		return p
	}
	h.check(t, expect{service: success}, "252 properties", insert("252", many(252, 1)))
	h.check(t, expect{service: "400 TooManyProperties", emulator: success, why: "does not count"}, "253 properties", insert("253", many(253, 1)))
	text := strings.Repeat("x", 32<<10)
	h.check(t, expect{service: success}, "a text of 64 KiB", insert("64k", many(1, text)))
	h.check(t, expect{service: "400 PropertyValueTooLarge"}, "a longer text", insert("64k1", many(1, text+"x")))
	h.check(t, expect{service: "400 EntityTooLarge", emulator: success, why: "counts the bytes of the request"}, "more than 1 MiB", insert("1m", many(16, text)))
	h.check(t, expect{service: "413 RequestBodyTooLarge"}, "a request of more than 4 MiB", insert("4m", many(140, text)))
	for _, key := range []string{"a/b", `a\b`, "a#b", "a?b", "a\tb"} {
		h.check(t, expect{service: "400 OutOfRangeInput", emulator: "400 InvalidInput", why: "gives another code"}, fmt.Sprintf("the key %q", key), insert(key, nil))
	}
	for _, key := range []string{"", "o'brien", "a b+c%d&e", "ümläut", "'"} {
		h.check(t, expect{service: success}, fmt.Sprintf("the key %q", key), insert(key, nil))
		got, err := client.GetEntity(t.Context(), "p", key, nil)
		if err != nil || got.ETag == "" {
			t.Errorf("get %q: %v", key, err)
		}
	}
}

func entityQueries(t T, h Harness) {
	client := h.table(t)
	for i := range 5 {
		e := fmt.Sprintf(`{"PartitionKey":"p%d","RowKey":"r%d","n":%d,"long":"%d","long@odata.type":"Edm.Int64","d":%d.5,"s":"it's %d","flag":%t,
			"at":"2024-01-0%dT00:00:00Z","at@odata.type":"Edm.DateTime","id":"c9da6455-213d-42c9-9a79-00000000000%d","id@odata.type":"Edm.Guid",
			"raw":"AA%dC","raw@odata.type":"Edm.Binary"}`, i/3, i, i, i, i, i, i%2 == 0, i+1, i, i)
		if _, err := client.AddEntity(t.Context(), []byte(e), nil); err != nil {
			t.Fatal(err)
		}
	}
	for filter, want := range map[string]string{
		"":                     "r0 r1 r2 r3 r4",
		"PartitionKey eq 'p0'": "r0 r1 r2",
		"PartitionKey eq 'p0' and RowKey gt 'r0'":          "r1 r2",
		"n ge 3 or s eq 'it''s 0'":                         "r0 r3 r4",
		"not (n lt 3)":                                     "r3 r4",
		"n gt 1 and n lt 4 or n eq 0":                      "r0 r2 r3",
		"(n eq 0 or n eq 1) and flag eq true":              "r0",
		"long eq 2L":                                       "r2",
		"d gt 3.0":                                         "r3 r4",
		"at ge datetime'2024-01-04T00:00:00Z'":             "r3 r4",
		"id eq guid'c9da6455-213d-42c9-9a79-000000000001'": "r1",
		"n ne 2":      "r0 r1 r3 r4",
		"absent eq 1": "",
	} {
		if got, err := query(t, client, &aztables.ListEntitiesOptions{Filter: &filter}); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", filter, got, err, want)
		}
	}
	bad := "n eq"
	if _, err := query(t, client, &aztables.ListEntitiesOptions{Filter: &bad}); err == nil {
		t.Errorf("%s is accepted", bad)
	}
	top, selected := int32(2), "RowKey,n"
	if got, err := query(t, client, &aztables.ListEntitiesOptions{Top: &top, Select: &selected}); err != nil || got != "r0 r1 | r2 r3 | r4" {
		t.Errorf("pages of two: %s, %v", got, err)
	}
}

// query lists the RowKeys, with | between pages.
func query(t T, client *aztables.Client, opts *aztables.ListEntitiesOptions) (string, error) {
	t.Helper()
	var pages []string
	for pager := client.NewListEntitiesPager(opts); pager.More(); {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			return "", err
		}
		var rows []string
		for _, raw := range page.Entities {
			var e struct {
				RowKey string
				ETag   string `json:"odata.etag"`
				S      string `json:"s"`
			}
			if err := json.Unmarshal(raw, &e); err != nil {
				return "", err
			}
			if e.ETag == "" || opts.Select != nil && e.S != "" {
				return "", errors.New("an entity in a list: " + string(raw))
			}
			rows = append(rows, e.RowKey)
		}
		pages = append(pages, strings.Join(rows, " "))
	}
	return strings.Join(pages, " | "), nil
}
