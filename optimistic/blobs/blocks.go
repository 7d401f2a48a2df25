package blobs

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// maxBlockID is the length of a block's id before it is encoded (REST: "Put Block").
const maxBlockID = 64

// BlockOptions tunes StageBlock. The zero value is the default.
type BlockOptions struct {
	// LeaseID is the id of the lease that the caller holds on the blob. Put Block takes no other condition (REST: "Put
	// Block"): staging changes nothing yet. Defaults to none.
	LeaseID string

	// SendOptions's MinRate defaults to 32 KiB/s here, because a block takes long on a slow connection.
	optimistic.SendOptions

	_ struct{}
}

// StageBlock stores a block of a block blob under an id, for CommitBlocks. A later block with the same id replaces it,
// so ids should be unique among writers. Upload stages and commits by itself.
//
// id is encoded for the request. It has at most 64 bytes, and all ids of a blob must have the same length. Staging the
// same block again changes nothing, so the request is repeated after a lost response. Errors are those of the service.
// The service drops staged blocks that are not committed after a week. Cost: 1 request.
func StageBlock(ctx context.Context, client *blockblob.Client, id string, data []byte, opts *BlockOptions) (_ optimistic.Result, err error) {
	o := ptr.Value(opts)
	switch {
	case id == "" || len(id) > maxBlockID:
		return optimistic.Result{}, fmt.Errorf("block id %q: %d bytes are not 1 to %d", id, len(id), maxBlockID)
	case len(data) == 0 || len(data) > maxBlockSize:
		return optimistic.Result{}, fmt.Errorf("block %q: %d bytes are not 1 to %d", id, len(data), maxBlockSize)
	}
	o.MinRate = cmp.Or(o.MinRate, minRate)
	ctx, c, end, err := begin.On(ctx, o.SendOptions, "blobs.StageBlock", "stage", client)
	if err != nil {
		return optimistic.Result{}, err
	}
	defer end(&err)
	u := upload{Call: c, client: client, o: UploadOptions{Conditions: optimistic.Conditions{LeaseID: o.LeaseID}}}
	err = u.stageBlock(ctx, encodeBlockID(id), data)
	if err != nil {
		return optimistic.Result(c.Finish()), c.Fail(err)
	}
	c.Res.Changed = true
	return optimistic.Result(c.Finish()), nil
}

func encodeBlockID(id string) string { return base64.StdEncoding.EncodeToString([]byte(id)) }

// CommitBlocks makes a block blob of the blocks with these ids, in this order. For each id it takes the block that was
// staged last, or else the committed one. The options are those of Upload; BlockSize, Concurrency and Progress have no
// effect.
//
// Errors are those of Upload: *ConflictError with Reason BlockList means that a block was never staged, or that another
// commit has discarded it (REST: "Put Block List", InvalidBlockList). After any error but *UnknownError the blob is
// unchanged by this call, and the blocks remain staged. Cost: 1 request; 1 more on a conflict, and 1 more if it looks
// first, as Upload does.
func CommitBlocks(ctx context.Context, client *blockblob.Client, ids []string, opts *UploadOptions) (_ optimistic.Result, err error) {
	o, err := opts.withDefaults()
	if err != nil {
		return optimistic.Result{}, err
	}
	if len(ids) > maxBlocks {
		return optimistic.Result{}, fmt.Errorf("%d blocks are more than the %d that a blob can have", len(ids), maxBlocks)
	}
	encoded := make([]string, len(ids))
	for i, id := range ids {
		if len(id) != len(ids[0]) {
			return optimistic.Result{}, fmt.Errorf("block ids %q and %q differ in length, which the service does not allow", ids[0], id)
		}
		if id == "" || len(id) > maxBlockID {
			return optimistic.Result{}, fmt.Errorf("block id %q: %d bytes are not 1 to %d", id, len(id), maxBlockID)
		}
		encoded[i] = encodeBlockID(id)
	}
	ctx, call, end, err := begin.On(ctx, o.SendOptions, "blobs.CommitBlocks", "commit", client)
	if err != nil {
		return optimistic.Result{}, err
	}
	defer end(&err)
	u := upload{Call: call, client: client, o: o}
	w, err := u.write(ctx, false)
	if err != nil {
		return u.done(err)
	}
	if w.Send, err = u.commitBlocks(encoded, w); err != nil {
		return u.done(u.Fail(err))
	}
	return u.done(u.CarryOut(ctx, w))
}

// Block is one block of a blob.
type Block struct {
	ID        string // as given to StageBlock; as stored, if that is not base64
	Size      int64  // in bytes
	Committed bool   // part of the content, not only staged
}

// ListBlocks returns the blocks of a block blob, first the committed ones in their order and then the staged ones, and
// the blob's ETag, which is empty until a first commit. Transient faults are retried. Errors are ErrNotFound and those
// of the service. Cost: 1 request.
func ListBlocks(ctx context.Context, client *blockblob.Client, kind blockblob.BlockListType, opts *optimistic.ReadOptions) (_ []Block, _ optimistic.State, err error) {
	ctx, c, end, err := begin.On(ctx, ptr.Value(opts).SendOptions, "blobs.ListBlocks", "list blocks of", client)
	if err != nil {
		return nil, optimistic.State{}, err
	}
	defer end(&err)
	resp, err := protocol.Again(ctx, c, func(ctx context.Context) (blockblob.GetBlockListResponse, error) {
		resp, err := wire.Request(ctx, "Get Block List", func(ctx context.Context) (blockblob.GetBlockListResponse, error) {
			return client.GetBlockList(ctx, kind, nil)
		})
		if resp.LastModified != nil { // it has been committed
			_, err = protocol.Sent("ETag", resp.ETag, err)
		}
		return resp, err
	})
	if err != nil {
		return nil, optimistic.State{}, c.Fail(err)
	}
	var blocks []Block
	add := func(list []*blockblob.Block, committed bool) {
		for _, b := range list {
			blocks = append(blocks, Block{ID: decodeBlockID(ptr.Value(b.Name)), Size: ptr.Value(b.Size), Committed: committed})
		}
	}
	add(resp.CommittedBlocks, true)
	add(resp.UncommittedBlocks, false)
	return blocks, optimistic.State{Exists: ptr.Value(resp.ETag) != "", ETag: ptr.Value(resp.ETag)}, nil
}

func decodeBlockID(encoded string) string {
	if id, err := base64.StdEncoding.DecodeString(encoded); err == nil {
		return string(id)
	}
	return encoded
}
