package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// Row is a row of the article's tables: an operation, with the behaviour of a service.
type Row struct {
	Operation  string
	ETag       bool   // its response has an ETag
	Conditions bool   // a condition on the version has an effect
	Lease      string // "required" by an active lease, "checked" if one is given, "ignored"
}

func (r Row) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s |", r.Operation, yes(r.ETag), yes(r.Conditions), r.Lease)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Article are the tables of "Managing concurrency in Azure Storage" for blobs and containers: whether an operation
// returns an ETag and accepts conditional headers. The article does not list lease operations one by one.
var Article = []Row{
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

// Rows runs every operation in the article's tables, and returns the rows in their order.
func Rows(t T, h Harness) []Row {
	byName := map[string]Row{}
	c := h.Container(t)
	source := h.sourceURL(t, c, "source")
	for i, op := range operations() {
		if !slices.ContainsFunc(Article, func(r Row) bool { return r.Operation == op.name }) {
			continue
		}
		asked := 0
		ask := func(condition string) (said, *azcore.ETag) {
			asked++
			x := target{container: c, name: fmt.Sprintf("row-%02d-%d", i, asked), source: source}
			x.create(t, op.kind)
			var conditions *blob.AccessConditions
			if condition != "" {
				conditions = x.conditions(t, condition)
			}
			var etag *azcore.ETag
			got := call(func(ctx context.Context) (err error) { etag, err = op.run(ctx, x, conditions); return err })
			return got, etag
		}
		_, etag := ask("")
		refused := func(condition string) bool { got, _ := ask(condition); return got != success }
		byName[op.name] = Row{op.name, etag != nil && *etag != "", refused(matchOther), leaseWord(refused)}
	}
	for _, op := range containerOperations() {
		ask := func(condition string) (said, *azcore.ETag) {
			c := h.Container(t)
			var conditions *container.AccessConditions
			if condition != "" {
				conditions = containerConditions(t, c, condition)
			}
			var etag *azcore.ETag
			got := call(func(ctx context.Context) (err error) { etag, err = op.run(ctx, c, conditions); return err })
			return got, etag
		}
		_, etag := ask("")
		refused := func(condition string) bool { got, _ := ask(condition); return got != success }
		byName[op.name] = Row{op.name, etag != nil && *etag != "", refused(modifiedSince), leaseWord(refused)}
	}
	// The SDK reads metadata with the properties, and a container has nothing before it is created.
	byName["Get Blob Metadata"] = byName["Get Blob Properties"]
	byName["Get Container Metadata"] = byName["Get Container Properties"]
	byName["Create Container"] = createRow(t, h)
	byName["Abort Copy Blob"] = abortRow(t, h)
	var rows []Row
	for _, a := range Article {
		row := byName[a.Operation]
		row.Operation = a.Operation
		rows = append(rows, row)
	}
	return rows
}

func leaseWord(refused func(condition string) bool) string {
	switch {
	case refused(leasedWithout):
		return "required"
	case refused(leasedOther):
		return "checked"
	}
	return "ignored"
}

func createRow(t T, h Harness) Row {
	c := h.Container(t)
	if _, err := c.Delete(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	other := h.Container(t) // the harness has called Create for it; only the ETag of the response matters
	p, err := other.GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return Row{ETag: p.ETag != nil, Lease: "ignored"}
}

// abortRow uses a copy id that does not exist: the service checks the lease before the pending copy.
func abortRow(t T, h Harness) Row {
	c := h.Container(t)
	x := target{container: c, name: "abort"}
	x.create(t, "")
	leased := target{container: c, name: "abort-leased"}
	leased.create(t, "")
	leased.conditions(t, leasedWithout)
	abort := func(x target) said {
		return call(func(ctx context.Context) error {
			_, err := x.any().AbortCopyFromURL(ctx, "11111111-1111-4111-8111-111111111111", nil)
			return err
		})
	}
	row := Row{Lease: "ignored"}
	if free, held := abort(x), abort(leased); held == noLeaseID && strings.HasPrefix(string(free), "409") {
		row.Lease = "required"
	}
	return row
}

// Markdown formats rows as a table.
func Markdown(rows []Row) string {
	var b strings.Builder
	b.WriteString("| operation | returns an ETag | takes conditions on the version | a lease is |\n|---|---|---|---|\n")
	for _, r := range rows {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}
