package optimistic_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/azconc/azconc/optimistic/appends"
	"github.com/azconc/azconc/optimistic/pages"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestANilArgumentIsNamed: a call with a nil argument sends nothing, and its error says which argument it is.
func TestANilArgumentIsNamed(t *testing.T) {
	s, block := optest.Quiet(t, `{"n":1}`)
	ctx := t.Context()
	calls := map[string]error{
		"update: target is nil": optest.ErrorOf(optimistic.Update[int](ctx, nil, func(context.Context, *int) error { return nil }, nil)),
		"update: change is nil": optest.ErrorOf(optimistic.Update(ctx, blobs.NewBytes(block), nil, nil)),
		"read: target is nil":   optest.ErrorOf(optimistic.Read[int](ctx, nil, nil)),
		"create: target is nil": optest.ErrorOf(optimistic.Create(ctx, nil, 1, nil)),
		"replace: target is nil": optest.ErrorOf(optimistic.Replace(ctx, nil,
			&optimistic.Version[int]{State: optimistic.State{Exists: true, ETag: `"1"`}}, 1, nil)),
		"delete: target is nil":   optest.ErrorOf(optimistic.Delete[int](ctx, nil, optimistic.State{}, nil)),
		"document: target is nil": optest.ErrorOf(optimistic.NewDocument[int](nil, nil)),

		"append: client is nil":                optest.ErrorOf(appends.Append(ctx, nil, []byte("x"), nil)),
		"stage: client is nil":                 optest.ErrorOf(blobs.StageBlock(ctx, nil, "1", []byte("x"), nil)),
		"commit: client is nil":                optest.ErrorOf(blobs.CommitBlocks(ctx, nil, nil, nil)),
		"copy: client is nil":                  optest.ErrorOf(blobs.Copy(ctx, nil, block.BlobClient(), nil)),
		"copy: source is nil":                  optest.ErrorOf(blobs.Copy(ctx, block.BlobClient(), nil, nil)),
		"abort copy: client is nil":            optest.ErrorOf(blobs.AbortCopy(ctx, nil, "1", nil)),
		"get: client is nil":                   optest.ErrorOf(blobs.Download(ctx, nil, io.Discard, nil)),
		"get: w is nil":                        optest.ErrorOf(blobs.Download(ctx, block.BlobClient(), nil, nil)),
		"create pages: client is nil":          optest.ErrorOf(pages.Create(ctx, nil, 512, nil)),
		"put pages: client is nil":             optest.ErrorOf(pages.Put(ctx, nil, 0, make([]byte, 512), nil)),
		"clear pages: client is nil":           optest.ErrorOf(pages.Clear(ctx, nil, 0, 512, nil)),
		"snapshot: c is nil":                   optest.ErrorOf(blobs.Snapshot(ctx, nil, "n.json", nil)),
		"put: client is nil":                   optest.ErrorOf(blobs.Upload(ctx, nil, optest.Body("x"), nil)),
		"put: r is nil":                        optest.ErrorOf(blobs.Upload(ctx, block, nil, nil)),
		"create: client is nil":                optest.ErrorOf(settings.CreateContainer(ctx, nil, nil)),
		"delete container: client is nil":      optest.ErrorOf(settings.DeleteContainer(ctx, nil, nil)),
		"create queue: client is nil":          optest.ErrorOf(settings.CreateQueue(ctx, nil, nil)),
		"delete queue: client is nil":          optest.ErrorOf(settings.DeleteQueue(ctx, nil, nil)),
		"clear queue: client is nil":           optest.ErrorOf(settings.ClearQueue(ctx, nil, nil)),
		"create table: client is nil":          optest.ErrorOf(tables.CreateTable(ctx, nil, nil)),
		"delete table: client is nil":          optest.ErrorOf(tables.DeleteTable(ctx, nil, nil)),
		"upsert: the client of target is nil":  optest.ErrorOf(tables.Upsert(ctx, tables.Entity[optest.Counter]{PartitionKey: "p"}, optest.Counter{}, nil)),
		"transact: table is nil":               optest.ErrorOf(tables.Transact(ctx, nil, "p", func(context.Context, *tables.Tx) error { return nil }, nil)),
		"transact: change is nil":              optest.ErrorOf(tables.Transact(ctx, s.Table("orders"), "p", nil, nil)),
		"the holder of the fence is nil":       optest.ErrorOf(optimistic.Update(ctx, blobs.Fenced(nil, blobs.NewJSON[optest.Counter](block)), optest.Increment, nil)),
		"Blob.Codec is nil":                    optest.ErrorOf(optimistic.Read(ctx, blobs.Blob[int]{Client: block}, nil)),
		"create box/n.json: Blob.Codec is nil": optest.ErrorOf(optimistic.Create(ctx, blobs.Blob[int]{Client: block}, 1, nil)),
	}
	_, _, calls["list blocks of: client is nil"] = blobs.ListBlocks(ctx, nil, "all", nil)
	_, _, calls["raise sequence number: client is nil"] = pages.RaiseSequenceNumber(ctx, nil, 1, nil)
	document, err := optimistic.NewDocument(blobs.NewJSON[optest.Counter](block), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, calls["update: change is nil "] = document.Update(ctx, nil)
	for want, err := range calls {
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("err = %v, want %s", err, want)
		}
	}
	for _, r := range s.Log() {
		if aztest.Writes(&r) {
			t.Errorf("sent %v", r)
		}
	}
}

// TestATargetWithoutAClientIsRefused: no target panics.
func TestATargetWithoutAClientIsRefused(t *testing.T) {
	refused(t, "content", blobs.NewBytes(nil))
	refused(t, "fenced", blobs.Fenced(&optest.Holder{Token: 1}, blobs.NewBytes(nil)))
	refused(t, "metadata", blobs.NewMetadata(nil))
	refused(t, "tags", blobs.NewTags(nil))
	refused(t, "headers", blobs.NewHeaders((*blob.Client)(nil)))
	refused(t, "pages", pages.NewRange(nil, 0, 512))
	refused(t, "container", settings.NewContainerMetadata(nil))
	refused(t, "container acl", settings.NewContainerACL(nil))
	refused(t, "queue", settings.NewLastWriterWinsQueueMetadata(nil))
	refused(t, "queue acl", settings.NewLastWriterWinsQueueACL(nil))
	refused(t, "queue service", settings.NewLastWriterWinsQueueService(nil))
	refused(t, "entity", tables.NewEntity[optest.Counter]((*aztables.Client)(nil), "p", "r"))
}

func refused[T any](t *testing.T, name string, target optimistic.Target[T]) {
	t.Helper()
	var none T
	version := &optimistic.Version[T]{State: optimistic.State{Exists: true, ETag: `"1"`}}
	for call, err := range map[string]error{
		"update":  optest.ErrorOf(optimistic.Update(t.Context(), target, func(context.Context, *T) error { return nil }, nil)),
		"read":    optest.ErrorOf(optimistic.Read(t.Context(), target, nil)),
		"create":  optest.ErrorOf(optimistic.Create(t.Context(), target, none, nil)),
		"replace": optest.ErrorOf(optimistic.Replace(t.Context(), target, version, none, nil)),
		"delete":  optest.ErrorOf(optimistic.Delete(t.Context(), target, version.State, nil)),
	} {
		if want := call + ": the client of target is nil"; err == nil || err.Error() != want {
			t.Errorf("%s: err = %v, want %s", name, err, want)
		}
	}
}

// foreignTarget is a type outside azconc that has taken the seal.
type foreignTarget struct{ optimistic.Sealed[int] }

func (foreignTarget) Resource() string { return "box/n" }

func TestATargetOfOthersIsRefused(t *testing.T) {
	if _, err := optimistic.Read(t.Context(), foreignTarget{}, nil); err == nil || !strings.Contains(err.Error(), "foreignTarget is none of azconc's") {
		t.Errorf("err = %v", err)
	}
}

// TestATypeThatEmbedsATargetIsOne, as before there was a seal.
func TestATypeThatEmbedsATargetIsOne(t *testing.T) {
	_, client := optest.Quiet(t, `{"n":3}`)
	named := struct{ blobs.Blob[optest.Counter] }{blobs.NewJSON[optest.Counter](client)}
	if v, err := optimistic.Read(t.Context(), named, nil); err != nil || v.Value.N != 3 {
		t.Errorf("%+v, %v", v, err)
	}
}
