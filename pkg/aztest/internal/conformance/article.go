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

// Row is a row of the article's tables about an operation, with the answers of a service.
type Row struct {
	Operation  string
	ETag       bool   // its answer carries an ETag
	Conditions bool   // a condition on the version makes a difference
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
// returns an ETag and accepts conditional headers. The article says nothing of leases operation by operation.
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

// Rows asks the article's questions of every operation in its tables and returns the answers in their order.
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
	// The SDK reads metadata with the properties, and nothing of a container exists before it is created.
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
	other := h.Container(t) // Create was called for it by the harness; only its answer's ETag is of interest
	p, err := other.GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return Row{ETag: p.ETag != nil, Lease: "ignored"}
}

// abortRow asks with a copy id that is none: whether there is a pending copy is judged after the lease.
func abortRow(t T, h Harness) Row {
	c := h.Container(t)
	x := target{container: c, name: "abort"}
	x.create(t, "")
	leased := target{container: c, name: "abort-leased"}
	leased.create(t, "")
	leased.conditions(t, leasedWithout)
	abort := func(x target) said {
		return call(func(ctx context.Context) error {
			_, err := x.any().AbortCopyFromURL(ctx, "none", nil)
			return err
		})
	}
	row := Row{Lease: "ignored"}
	if free, held := abort(x), abort(leased); held == noLeaseID && strings.HasPrefix(string(free), "409") {
		row.Lease = "required"
	}
	return row
}

// Markdown is rows as a table.
func Markdown(rows []Row) string {
	var b strings.Builder
	b.WriteString("| operation | returns an ETag | takes conditions on the version | a lease is |\n|---|---|---|---|\n")
	for _, r := range rows {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}
