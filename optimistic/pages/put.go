package pages

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
)

// PutOptions tunes Put. The zero value overwrites the pages: last writer wins.
type PutOptions struct {
	// Conditions and Sequence decide which writer wins. They default to none.
	Conditions optimistic.Conditions
	Sequence   SequenceConditions

	// CPK and EncryptionScope are passed with every request.
	CPK             *blob.CPKInfo
	EncryptionScope *blob.CPKScopeInfo

	optimistic.SendOptions

	_ struct{}
}

// Put writes data at offset of a page blob, in one conditional request. The length of data is a multiple of
// PageSize, at most 4 MiB; zeros are cleared rather than stored. To compute the data from the stored data, Update a
// Range.
//
// Errors are those of Update: *ConflictError (Reason Sequence if a sequence condition failed), and *UnknownError if the
// response was lost and a repetition was refused. With IfMatch no repetition can overwrite another write. With only a
// sequence condition the same holds if each number belongs to one writer at a time, which a fence ensures. With
// neither, a repetition may overwrite a write in between.
//
// Cost: 1 request; 2 on a conflict.
func Put(ctx context.Context, client *pageblob.Client, offset int64, data []byte, opts *PutOptions) (optimistic.Result, error) {
	o := ptr.Value(opts)
	if offset < 0 || offset%PageSize != 0 || len(data)%PageSize != 0 || len(data) == 0 || len(data) > maxPageWrite {
		return optimistic.Result{}, fmt.Errorf("pages: %d bytes at %d are not 1 to %d bytes on multiples of %d", len(data), offset, maxPageWrite, PageSize)
	}
	return writePages(ctx, "pages.Put", "put pages", pageWrite{client: client, offset: offset, data: data}, o)
}

// Clear clears count bytes at offset, both multiples of PageSize, in one conditional request of any size. Errors
// and cost are those of Put.
func Clear(ctx context.Context, client *pageblob.Client, offset, count int64, opts *PutOptions) (optimistic.Result, error) {
	o := ptr.Value(opts)
	if offset < 0 || offset%PageSize != 0 || count%PageSize != 0 || count <= 0 {
		return optimistic.Result{}, fmt.Errorf("pages: %d bytes at %d are not on multiples of %d", count, offset, PageSize)
	}
	return writePages(ctx, "pages.Clear", "clear pages", pageWrite{client: client, offset: offset, count: count}, o)
}

func writePages(ctx context.Context, name, op string, p pageWrite, o PutOptions) (_ optimistic.Result, err error) {
	client := p.client
	if err := sealed.NotNil(op, "client", client); err != nil {
		return optimistic.Result{}, err
	}
	if err := o.Conditions.Validate(); err != nil {
		return optimistic.Result{}, err
	}
	c, err := o.Begin(op, resource.Path(client.URL()))
	if err != nil {
		return optimistic.Result{}, err
	}
	ctx, end := c.Start(ctx, name)
	defer end(&err)
	w := protocol.Change{AnyBase: true}
	if m := o.Conditions.IfMatch; m != "" && m != azcore.ETagAny {
		w = protocol.Change{Base: protocol.State{Exists: true, ETag: m}, ID: protocol.NewWriteID()} // the id is not stored, so no look finds it
	}
	p.sequence, p.cpk, p.scope = o.Sequence, o.CPK, o.EncryptionScope
	w.Send = p.prepare(anyblob.AccessConditions(o.Conditions))
	w.Look = func(ctx context.Context) (protocol.State, error) {
		return anyblob.Look(ctx, client.BlobClient(), o.CPK)
	}
	err = c.CarryOut(ctx, w)
	c.Res.WriteID = ""
	if conflict, ok := errors.AsType[*optimistic.ConflictError](err); ok && azerr.Has(conflict.Err, "SequenceNumberConditionNotMet") {
		conflict.Reason = azerr.Sequence
	}
	return optimistic.Result(c.Finish()), err
}
