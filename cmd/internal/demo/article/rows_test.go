package article

import (
	"fmt"
	"strings"
)

// row is a row of the article.
type row struct {
	Topic   string
	Call    string // a package of the module, a dot, and an exported identifier; a method with its type
	Command string // without its arguments
	Test    string // a folder, a colon, and the name of a test
	Scene   string // as azconc demo --scene takes it
}

const (
	tables     = "pkg/aztest:TestTheArticlesTables"
	entities   = "pkg/aztest:TestTheArticlesTableOfEntities"
	queues     = "pkg/aztest:TestTheArticlesSectionOnQueues"
	files      = "pkg/aztest:TestTheArticlesSentencesAboutFiles"
	onAzurite  = "cmd/internal/demo/scene:TestAzuriteGivesTheSameStatuses"
	inMemory   = "cmd/internal/demo/scene:TestEachSceneGetsTheStatusesThatItShows"
	conforming = "pkg/aztest:TestAzuriteAnswersAsExpected"
	expiring   = "pkg/aztest:TestLeasesOfAzuriteExpireAsExpected"
)

// rows are those of the article, in its order.
var rows = []row{
	{"Strategy: optimistic", "optimistic.Update", "blob update", onAzurite, "strategies"},
	{"Strategy: pessimistic", "pessimistic.Acquire", "lock run", onAzurite, "strategies"},
	{"Strategy: last writer wins", "optimistic/blobs.Upload", "blob put", onAzurite, "strategies"},
	{"Two editors of a page", "optimistic.Replace", "blob edit", onAzurite, "editors"},
	{"Put Blob", "optimistic/blobs.Upload", "blob put", tables, "editors"},
	{"Get Blob", "optimistic/blobs.Download", "blob get", tables, "conditions"},
	{"Get Blob Properties", "optimistic.Read", "blob show", tables, "conditions"},
	{"Set Blob Properties", "optimistic/blobs.NewHeaders", "blob headers set", tables, "blob-operations"},
	{"Get and Set Blob Metadata", "optimistic/blobs.NewMetadata", "blob metadata update", tables, "blob-operations"},
	{"Lease Blob", "pessimistic/manual.Acquire", "blob lease acquire", tables, "lease"},
	{"Snapshot Blob", "optimistic/blobs.Snapshot", "blob snapshot", tables, "blob-operations"},
	{"Copy Blob", "optimistic/blobs.Copy", "blob copy", tables, "blob-operations"},
	{"Abort Copy Blob", "optimistic/blobs.AbortCopy", "blob abort-copy", tables, "blob-operations"},
	{"Delete Blob", "optimistic/blobs.Delete", "blob delete", tables, "blob-operations"},
	{"Put Block", "optimistic/blobs.StageBlock", "blob block put", tables, "blob-operations"},
	{"Put Block List", "optimistic/blobs.CommitBlocks", "blob block commit", tables, "blob-operations"},
	{"Get Block List", "optimistic/blobs.ListBlocks", "blob block list", tables, "blob-operations"},
	{"Put Page", "optimistic/pages.Put", "blob page put", tables, "blob-operations"},
	{"Get Page Ranges", "optimistic/pages.NewRange", "blob page ranges", tables, "blob-operations"},
	{"Create Container", "optimistic/settings.CreateContainer", "container create", tables, "container-operations"},
	{"Get Container Properties", "optimistic.Read", "container show", tables, "container-operations"},
	{"Get and Set Container Metadata", "optimistic/settings.NewContainerMetadata", "container metadata update", tables, "container-operations"},
	{"Get and Set Container ACL", "optimistic/settings.NewContainerACL", "container acl set", tables, "container-operations"},
	{"Delete Container", "optimistic/settings.DeleteContainer", "container delete", tables, "container-lease"},
	{"Lease Container", "pessimistic.NewContainer", "container lease acquire", tables, "container-lease"},
	{"List Blobs", "pessimistic.Locker.List", "blob list", tables, "lease-strategies"},
	{"Conditional headers and their pairs", "optimistic.Conditions", "blob put", conforming, "conditions"},
	{"A second lease: 409; a write without it: 412", "pessimistic.ErrHeld", "blob lease acquire", onAzurite, "lease"},
	{"A write with an expired lease: 412", "pessimistic.LostError", "blob put", expiring, "lease"},
	{"Container leases guard deletion only", "pessimistic.NewContainer", "container lease acquire", onAzurite, "container-lease"},
	{"Exclusive and shared writes and reads", "pessimistic/shared.NewStrategist", "lock run", onAzurite, "lease-strategies"},
	{"Query Entities", "optimistic.Read", "table query", entities, "entity"},
	{"Insert Entity", "optimistic.Create", "table insert", entities, "entity"},
	{"Update Entity", "optimistic.Replace", "table replace", entities, "entity"},
	{"Merge Entity", "optimistic.Update", "table merge", entities, "entity"},
	{"Delete Entity", "optimistic.Delete", "table delete-entity", entities, "entity"},
	{"Insert Or Replace, Insert Or Merge Entity", "optimistic/tables.Upsert", "table upsert", entities, "entity"},
	{"A lock on a table by a blob", "pessimistic.Locker.TableLock", "table lock run", onAzurite, "table-lock"},
	{"Pop receipt, visibility timeout", "idempotent/manual.Receive", "queue receive", queues, "message"},
	{"Idempotent processing", "idempotent.Inbox.Apply", "queue consume", onAzurite, "lost-sends"},
	{"Update Message", "idempotent/manual.Extend", "queue extend", queues, "message"},
	{"Last writer wins: queue metadata", "optimistic/settings.NewLastWriterWinsQueueMetadata", "queue metadata set", queues, "message"},
	{"Files: leases, and no conditions", "pessimistic/files.Update", "file update", inMemory, "files"},
	{"Files: SharingViolation, SMBDeletePending", "pessimistic/files.Delete", "file delete", files, "files"},
	{"A read of one version", "optimistic/blobs.Download", "blob get", conforming, "conditions"},
}

// page returns the text of .github/docs/article.md.
func page() string {
	var b strings.Builder
	b.WriteString(`# The article, row by row

Each row of Microsoft's "Managing concurrency in Azure Storage", with the library call, the command, a test and the nearest scene of
` + "`azconc demo`" + `. A scene does not repeat every operation of its rows; the test does. This page is written by
` + "`go test ./cmd/internal/demo/article -args -update`" + `, and the same test checks that what it names exists. Files are tested in
memory alone, since Azurite has none.

| the article | library | command | test | scene |
|---|---|---|---|---|
`)
	for _, r := range rows {
		folder, name, _ := strings.Cut(r.Test, ":")
		fmt.Fprintf(&b, "| %s | `%s` | `azconc %s` | [`%s`](../../%s) | `%s` |\n", r.Topic, r.Call, r.Command, name, folder, r.Scene)
	}
	return b.String()
}
