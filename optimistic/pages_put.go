package optimistic

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

// PageOptions tunes PutPages. The zero value overwrites the pages: last writer wins.
type PageOptions struct {
	// Conditions and Sequence decide who wins. Defaults to none.
	Conditions Conditions
	Sequence   SequenceConditions

	// CPK and EncryptionScope are passed with every request.
	CPK             *blob.CPKInfo
	EncryptionScope *blob.CPKScopeInfo

	Sending

	_ struct{}
}

// PutPages writes data, a multiple of PageSize of at most 4 MiB, at offset of a page blob, in one conditional request;
// zeros only are cleared rather than stored. To change what is there by what is there, Update a PageRange.
//
// Errors are those of Update: *ConflictError (Reason Sequence when a sequence condition failed), *UnknownError when the
// answer was lost and a repetition was refused. With IfMatch, no repetition can be carried out over another's write.
// With a sequence condition alone that holds as long as one writer at a time has a number, which is what a fence
// ensures. Without either, a repetition may overwrite whoever wrote in between.
//
// Cost: 1 request; 2 on a conflict.
func PutPages(ctx context.Context, client *pageblob.Client, offset int64, data []byte, opts *PageOptions) (Result, error) {
	var o PageOptions
	if opts != nil {
		o = *opts
	}
	if offset < 0 || offset%PageSize != 0 || len(data)%PageSize != 0 || len(data) == 0 || len(data) > maxPageWrite {
		return Result{}, fmt.Errorf("pages: %d bytes at %d are not 1 to %d bytes on multiples of %d", len(data), offset, maxPageWrite, PageSize)
	}
	return writePages(ctx, "put pages", pageWrite{client: client, offset: offset, data: data}, o)
}

// ClearPages makes zeros of count bytes at offset, both multiples of PageSize, in one conditional request however many
// they are. Errors and cost are those of PutPages.
func ClearPages(ctx context.Context, client *pageblob.Client, offset, count int64, opts *PageOptions) (Result, error) {
	var o PageOptions
	if opts != nil {
		o = *opts
	}
	if offset < 0 || offset%PageSize != 0 || count%PageSize != 0 || count <= 0 {
		return Result{}, fmt.Errorf("pages: %d bytes at %d are not on multiples of %d", count, offset, PageSize)
	}
	return writePages(ctx, "clear pages", pageWrite{client: client, offset: offset, count: count}, o)
}

func writePages(ctx context.Context, op string, p pageWrite, o PageOptions) (Result, error) {
	client := p.client
	if err := o.Conditions.validate(); err != nil {
		return Result{}, err
	}
	s, err := o.Sending.withDefaults()
	if err != nil {
		return Result{}, err
	}
	c := newCall(op, resource.Path(client.URL()), s, nil)
	w := write{anyBase: true}
	if m := o.Conditions.IfMatch; m != "" && m != azcore.ETagAny {
		w = write{base: State{Exists: true, ETag: m}, id: newWriteID(c.writer)} // the id is stored nowhere, and so never found
	}
	p.sequence, p.cpk, p.scope = o.Sequence, o.CPK, o.EncryptionScope
	w.send = p.prepare(accessConditions(o.Conditions))
	w.look = func(ctx context.Context) (State, error) { return lookAtBlob(ctx, client.BlobClient(), o.CPK) }
	err = c.carryOut(ctx, w)
	c.res.WriteID = ""
	if conflict, ok := errors.AsType[*ConflictError](err); ok && azerr.Has(conflict.Err, "SequenceNumberConditionNotMet") {
		conflict.Reason = azerr.Sequence
	}
	return c.finish(), err
}
