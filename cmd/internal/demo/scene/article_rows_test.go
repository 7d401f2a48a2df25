package scene

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
	tablesTest   = "cmd/azconc/internal/conformance:TestTheArticlesTables"
	entitiesTest = "cmd/azconc/internal/conformance:TestTheArticlesTableOfEntities"
	queuesTest   = "pkg/aztest:TestTheArticlesSectionOnQueues"
	filesTest    = "pkg/aztest:TestTheArticlesSentencesAboutFiles"
	onAzurite    = "cmd/internal/demo/scene:TestAzuriteGivesTheSameStatuses"
	scenesTest   = "cmd/internal/demo/scene:TestEachSceneGetsTheStatusesThatItShows"
	conforming   = "cmd/azconc/internal/conformance:TestAzuriteAnswersAsExpected"
	expiring     = "cmd/azconc/internal/conformance:TestLeasesOfAzuriteExpireAsExpected"
)

// rows are those of the article, in its order.
var rows = []row{
	{"Strategy: optimistic", "optimistic.Update", "blob update", onAzurite, "editors"},
	{"Strategy: pessimistic", "pessimistic.Acquire", "lock run", onAzurite, "lease"},
	{"Strategy: last writer wins", "optimistic/blobs.Upload", "blob put", onAzurite, "editors"},
	{"Two editors of a page", "optimistic.Replace", "blob edit", onAzurite, "editors"},
	{"Put Blob", "optimistic/blobs.Upload", "blob put", tablesTest, "editors"},
	{"Get Blob", "optimistic/blobs.Download", "blob get", tablesTest, "conditions"},
	{"Get Blob Properties", "optimistic.Read", "blob show", tablesTest, "conditions"},
	{"Set Blob Properties", "optimistic/blobs.NewHeaders", "blob headers set", tablesTest, "blob-operations"},
	{"Get and Set Blob Metadata", "optimistic/blobs.NewMetadata", "blob metadata update", tablesTest, "blob-operations"},
	{"Lease Blob", "pessimistic/manual.Acquire", "blob lease acquire", tablesTest, "lease"},
	{"Snapshot Blob", "optimistic/blobs.Snapshot", "blob snapshot", tablesTest, "blob-operations"},
	{"Copy Blob", "optimistic/blobs.Copy", "blob copy", tablesTest, "blob-operations"},
	{"Abort Copy Blob", "optimistic/blobs.AbortCopy", "blob abort-copy", tablesTest, "blob-operations"},
	{"Delete Blob", "optimistic/blobs.Delete", "blob delete", tablesTest, "blob-operations"},
	{"Put Block", "optimistic/blobs.StageBlock", "blob block put", tablesTest, "blob-operations"},
	{"Put Block List", "optimistic/blobs.CommitBlocks", "blob block commit", tablesTest, "blob-operations"},
	{"Get Block List", "optimistic/blobs.ListBlocks", "blob block list", tablesTest, "blob-operations"},
	{"Put Page", "optimistic/pages.Put", "blob page put", tablesTest, "blob-operations"},
	{"Get Page Ranges", "optimistic/pages.NewRange", "blob page ranges", tablesTest, "blob-operations"},
	{"Create Container", "optimistic/settings.CreateContainer", "container create", tablesTest, "container-operations"},
	{"Get Container Properties", "optimistic.Read", "container show", tablesTest, "container-operations"},
	{"Get and Set Container Metadata", "optimistic/settings.NewContainerMetadata", "container metadata update", tablesTest, "container-operations"},
	{"Get and Set Container ACL", "optimistic/settings.NewContainerACL", "container acl set", tablesTest, "container-operations"},
	{"Delete Container", "optimistic/settings.DeleteContainer", "container delete", tablesTest, "container-lease"},
	{"Lease Container", "pessimistic.NewContainer", "container lease acquire", tablesTest, "container-lease"},
	{"List Blobs", "pessimistic.Locker.List", "blob list", tablesTest, "lease-strategies"},
	{"Conditional headers and their pairs", "optimistic.Conditions", "blob put", conforming, "conditions"},
	{"A second lease: 409; a write without it: 412", "pessimistic.ErrHeld", "blob lease acquire", onAzurite, "lease"},
	{"A write with an expired lease: 412", "pessimistic.LostError", "blob put", expiring, "lease"},
	{"Container leases guard deletion only", "pessimistic.NewContainer", "container lease acquire", onAzurite, "container-lease"},
	{"Exclusive and shared writes and reads", "pessimistic/shared.NewRWLock", "lock run", onAzurite, "lease-strategies"},
	{"Query Entities", "optimistic.Read", "table query", entitiesTest, "entity"},
	{"Insert Entity", "optimistic.Create", "table insert", entitiesTest, "entity"},
	{"Update Entity", "optimistic.Replace", "table replace", entitiesTest, "entity"},
	{"Merge Entity", "optimistic.Update", "table merge", entitiesTest, "entity"},
	{"Delete Entity", "optimistic.Delete", "table delete-entity", entitiesTest, "entity"},
	{"Insert Or Replace, Insert Or Merge Entity", "optimistic/tables.Upsert", "table upsert", entitiesTest, "entity"},
	{"A lock on a table by a blob", "pessimistic.Locker.TableLock", "table lock run", onAzurite, "table-lock"},
	{"Pop receipt, visibility timeout", "idempotent/manual.Receive", "queue receive", queuesTest, "message"},
	{"Idempotent processing", "idempotent.Inbox.Apply", "queue consume", onAzurite, "lost-sends"},
	{"Update Message", "idempotent/manual.Extend", "queue extend", queuesTest, "message"},
	{"Last writer wins: queue metadata", "optimistic/settings.NewLastWriterWinsQueueMetadata", "queue metadata set", queuesTest, "message"},
	{"Files: leases, and no conditions", "pessimistic/files.Update", "file update", scenesTest, "files"},
	{"Files: SharingViolation, SMBDeletePending", "pessimistic/files.Delete", "file delete", filesTest, "files"},
	{"A read of one version", "optimistic/blobs.Download", "blob get", conforming, "conditions"},
}

// page returns the text of .github/docs/article.md.
func page() string {
	var b strings.Builder
	b.WriteString(`# The article, row by row

The table lists each row of Microsoft's "Managing concurrency in Azure Storage" with the library call, the command, a test and the nearest scene of
` + "`azconc demo`" + `. A scene does not repeat every operation of its rows; the test does. This page is generated by
` + "`go test ./cmd/internal/demo/scene -run Page -args -update`" + `, and the same test checks that everything it names exists. Files are tested only
in memory, because Azurite has none.

| the article | library | command | test | scene |
|---|---|---|---|---|
`)
	for _, r := range rows {
		folder, name, _ := strings.Cut(r.Test, ":")
		fmt.Fprintf(&b, "| %s | `%s` | `azconc %s` | [`%s`](../../%s) | `%s` |\n", r.Topic, r.Call, r.Command, name, folder, r.Scene)
	}
	return b.String()
}
