package blobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/wire"
)

// stage uploads the content block by block and returns the block ids in order. At most Concurrency requests are under
// way; buffers are reused when a block has been stored.
func (u *upload) stage(ctx context.Context, r io.Reader, blocks ...[]byte) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(u.o.Concurrency)
	// One more buffer than there are requests under way is filled meanwhile. Two exist already.
	buffers := make(chan []byte, max(u.o.Concurrency+1, len(blocks)))
	for range cap(buffers) - len(blocks) {
		buffers <- nil
	}
	var prefix [16]byte
	rand.Read(prefix[:])
	var ids []string
	send := func(block []byte) {
		id := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(prefix[:], uint32(len(ids))))
		ids = append(ids, id)
		group.Go(func() error {
			if err := u.stageBlock(ctx, id, block); err != nil {
				return err
			}
			u.progress(int64(len(block)))
			if int64(cap(block)) < u.o.BlockSize {
				block = nil // the first one grew to its content
			}
			buffers <- block
			return nil
		})
	}
	for _, b := range blocks {
		send(b)
	}
	readErr := func() error {
		for ctx.Err() == nil {
			var buffer []byte
			select {
			case buffer = <-buffers:
			case <-ctx.Done():
				return nil // Wait has the reason
			}
			if buffer == nil {
				buffer = make([]byte, u.o.BlockSize)
			}
			block, err := readBlock(r, buffer[:u.o.BlockSize])
			if err != nil {
				return fmt.Errorf("read the content: %w", err)
			}
			if len(block) == 0 {
				return nil
			}
			if len(ids) == maxBlocks {
				return fmt.Errorf("content is longer than %d blocks of %d bytes: raise BlockSize", maxBlocks, u.o.BlockSize)
			}
			send(block)
		}
		return nil
	}()
	if readErr != nil {
		cancel() // nobody needs the blocks under way
	}
	return ids, cmp.Or(readErr, group.Wait())
}

// stageBlock stages a block. It repeats the request after transient faults, because staging the same block under the
// same id again changes nothing.
func (u *upload) stageBlock(ctx context.Context, id string, block []byte) error {
	opts := blockblob.StageBlockOptions{}
	if lease := u.o.Conditions.LeaseID; lease != "" {
		opts.LeaseAccessConditions = &blob.LeaseAccessConditions{LeaseID: &lease}
	}
	_, err := protocol.Again(ctx, u.Call, func(ctx context.Context) (blockblob.StageBlockResponse, error) {
		protocol.AllowFor(ctx, int64(len(block)))
		o := opts
		return wire.Request(ctx, "Put Block", func(ctx context.Context) (blockblob.StageBlockResponse, error) {
			return u.client.StageBlock(ctx, id, anyblob.Lend(block), &o)
		})
	})
	return err
}

func (u *upload) progress(n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stored += n
	if u.o.Progress != nil {
		u.o.Progress(u.stored)
	}
}

// readBlock fills buffer. It returns fewer bytes only at the end of r, and every other error of r as it is. io.ReadFull
// would report a block that r ends within by io.ErrUnexpectedEOF, which is also what a reader of a truncated gzip or of a
// broken connection returns.
func readBlock(r io.Reader, buffer []byte) ([]byte, error) {
	for n := 0; ; {
		m, err := r.Read(buffer[n:])
		n += m
		switch {
		case err == io.EOF:
			return buffer[:n], nil
		case err != nil:
			return nil, err
		case n == len(buffer):
			return buffer, nil
		}
	}
}
