package tables

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// TableOptions are the options of CreateTable, DeleteTable and Upsert. The zero value is the default, as is nil.
type TableOptions struct {
	// Hooks receive a span for the call, and one for each request. Default: none.
	Hooks observe.Hooks
}

// CreateTable creates a table. If it already exists, the error is optimistic.ErrExists.
//
// A table has no place for an id: if a response is lost and the table exists then, the error is an
// *optimistic.UnknownError, because nothing shows which client created it. Either way the table exists.
//
// Cost: 1 request, and 1 more for every lost response. Safe for concurrent use.
func CreateTable(ctx context.Context, client *aztables.Client, opts *TableOptions) (optimistic.Result, error) {
	if err := sealed.NotNil("create table", "client", client); err != nil {
		return optimistic.Result{}, err
	}
	r, err := protocol.Unproved{
		Op: "create", Resource: tableName(client), Name: "tables.CreateTable", Hooks: ptr.Value(opts).Hooks, Request: "Create Table", Exists: []string{"TableAlreadyExists"}, Why: "the table exists, and nothing shows who created it",
		Send: func(ctx context.Context) error {
			_, err := client.CreateTable(ctx, nil)
			return err
		},
	}.Do(ctx)
	r.Created = r.Changed
	return optimistic.Result(r), err
}

// DeleteTable deletes a table with all its entities: last writer wins, because the service accepts no condition here.
// It frees the name about 40 s later (REST: "Delete Table"). If a response is lost and the table is gone then, the
// deletion has succeeded, even if another client was faster. A repetition that is sent after the name is free deletes a
// table that was created since.
//
// Cost: 1 request, and 1 more for every lost response. Safe for concurrent use.
func DeleteTable(ctx context.Context, client *aztables.Client, opts *TableOptions) (optimistic.Result, error) {
	if err := sealed.NotNil("delete table", "client", client); err != nil {
		return optimistic.Result{}, err
	}
	r, err := protocol.Unproved{
		Op: "delete", Resource: tableName(client), Name: "tables.DeleteTable", Hooks: ptr.Value(opts).Hooks, Request: "Delete Table", Done: []string{"TableNotFound", "ResourceNotFound", "TableBeingDeleted"},
		Send: func(ctx context.Context) error {
			_, err := client.Delete(ctx, nil)
			return err
		},
	}.Do(ctx)
	return optimistic.Result(r), err
}

// Upsert inserts an entity, or overwrites the existing one: last writer wins, because the service accepts no condition
// here. In the modes MergeChanges and MergeGiven the properties that value does not name are kept (REST: "Insert Or Merge
// Entity"), in ReplaceWhole and ReplaceGiven they are removed, with the lineage and the operations (REST: "Insert Or Replace
// Entity").
//
// If a response is lost, the request is sent again, which has the same effect. It may overwrite what another client
// wrote in between.
//
// Cost: 1 request, and 1 more for every lost response. Safe for concurrent use.
func Upsert[T any](ctx context.Context, target Entity[T], value T, opts *TableOptions) (optimistic.Result, error) {
	if err := sealed.NotNil("upsert", "target", entityTarget[T]{target}); err != nil {
		return optimistic.Result{}, err
	}
	if err := addressable(target.PartitionKey, target.RowKey); err != nil {
		return optimistic.Result{}, err
	}
	d, err := changeOf(nil, false, value, target.PartitionKey, target.RowKey)
	if err != nil {
		return optimistic.Result{}, err
	}
	body, err := d.body(target.PartitionKey, target.RowKey, protocol.Lineage{}, true)
	if err != nil {
		return optimistic.Result{}, err
	}
	mode, request := aztables.UpdateModeMerge, "Insert Or Merge Entity"
	if target.Mode == ReplaceWhole || target.Mode == ReplaceGiven {
		mode, request = aztables.UpdateModeReplace, "Insert Or Replace Entity"
	}
	var etag azcore.ETag
	r, err := protocol.Unproved{
		Op: "upsert", Resource: target.Resource(), Name: "tables.Upsert", Hooks: ptr.Value(opts).Hooks, Request: request,
		Send: func(ctx context.Context) error {
			resp, err := target.Client.UpsertEntity(ctx, body, &aztables.UpsertEntityOptions{UpdateMode: mode})
			etag, err = protocol.Sent("ETag", ptr.Optional(resp.ETag), err)
			return err
		},
	}.Do(ctx)
	r.ETag = etag
	return optimistic.Result(r), err
}
