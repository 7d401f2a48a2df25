package conformance

import (
	"context"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// ArticleEntities is the article's table of operations on entities: whether an operation returns an ETag, and whether
// it accepts (and requires) If-Match.
var ArticleEntities = []Row{
	{"Query Entities", true, false, ""},
	{"Insert Entity", true, false, ""},
	{"Update Entity", true, true, ""},
	{"Merge Entity", true, true, ""},
	{"Delete Entity", false, true, ""},
	{"Insert Or Replace Entity", true, false, ""},
	{"Insert Or Merge Entity", true, false, ""},
}

// EntityRows runs every operation on entities. It sets the condition as a header, because the SDK omits it where the
// service would ignore it.
func EntityRows(t T, h Harness) []Row {
	client := h.table(t)
	stale := azcore.ETag(`W/"datetime'2020-01-01T00%3A00%3A00.0000000Z'"`)
	upsert := func(mode aztables.UpdateMode) func(context.Context, string, azcore.ETag) (azcore.ETag, error) {
		return func(ctx context.Context, row string, _ azcore.ETag) (azcore.ETag, error) {
			r, err := client.UpsertEntity(ctx, entity("p", row, nil), &aztables.UpsertEntityOptions{UpdateMode: mode})
			return r.ETag, err
		}
	}
	update := func(mode aztables.UpdateMode) func(context.Context, string, azcore.ETag) (azcore.ETag, error) {
		return func(ctx context.Context, row string, match azcore.ETag) (azcore.ETag, error) {
			r, err := client.UpdateEntity(ctx, entity("p", row, nil), &aztables.UpdateEntityOptions{IfMatch: &match, UpdateMode: mode})
			return r.ETag, err
		}
	}
	operations := map[string]struct {
		creates bool
		run     func(ctx context.Context, row string, match azcore.ETag) (azcore.ETag, error)
	}{
		"Query Entities": {run: func(ctx context.Context, row string, _ azcore.ETag) (azcore.ETag, error) {
			r, err := client.GetEntity(ctx, "p", row, nil)
			return r.ETag, err
		}},
		"Insert Entity": {creates: true, run: func(ctx context.Context, row string, _ azcore.ETag) (azcore.ETag, error) {
			r, err := client.AddEntity(ctx, entity("p", row, nil), nil)
			return r.ETag, err
		}},
		"Update Entity": {run: update(aztables.UpdateModeReplace)},
		"Merge Entity":  {run: update(aztables.UpdateModeMerge)},
		"Delete Entity": {run: func(ctx context.Context, row string, match azcore.ETag) (azcore.ETag, error) {
			_, err := client.DeleteEntity(ctx, "p", row, &aztables.DeleteEntityOptions{IfMatch: &match})
			return "", err
		}},
		"Insert Or Replace Entity": {run: upsert(aztables.UpdateModeReplace)},
		"Insert Or Merge Entity":   {run: upsert(aztables.UpdateModeMerge)},
	}
	var rows []Row
	for _, a := range ArticleEntities {
		op := operations[a.Operation]
		ask := func(row string, match azcore.ETag) (said, azcore.ETag) {
			row = strings.ReplaceAll(a.Operation, " ", "") + row
			if !op.creates {
				if _, err := client.AddEntity(t.Context(), entity("p", row, nil), nil); err != nil {
					t.Fatal(err)
				}
			}
			var etag azcore.ETag
			got := respond(func(ctx context.Context) (err error) {
				// An Insert Or Replace with the header would be an Update: the requests differ in nothing else.
				if match == stale && !a.Conditions && !strings.HasPrefix(a.Operation, "Insert Or") {
					ctx = policy.WithHTTPHeader(ctx, http.Header{"If-Match": {string(stale)}})
				}
				etag, err = op.run(ctx, row, match)
				return err
			})
			return got, etag
		}
		plain, etag := ask("plain", azcore.ETagAny)
		if plain != success {
			t.Errorf("%s: %s", a.Operation, plain)
		}
		refused, _ := ask("stale", stale)
		rows = append(rows, Row{Operation: a.Operation, ETag: etag != "", Conditions: refused != success})
	}
	return rows
}

// MarkdownEntities formats rows of operations on entities as a table.
func MarkdownEntities(rows []Row) string {
	var b strings.Builder
	b.WriteString("| operation | returns an ETag | takes If-Match |\n|---|---|---|\n")
	for _, r := range rows {
		b.WriteString("| " + r.Operation + " | " + yes(r.ETag) + " | " + yes(r.Conditions) + " |\n")
	}
	return b.String()
}
