package pessimistic

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
)

// UpdateFileOptions tunes UpdateFile. The zero value is the default.
type UpdateFileOptions struct {
	// Acquire says how to get the lease, above all how long to wait for another holder. Its Hooks default to Hooks.
	Acquire AcquireOptions

	// LeaseID is the id of a lease that the caller holds already. Defaults to none: one is acquired, and released.
	LeaseID string

	// Wait waits for SMB clients that have the file open for reading, when the lease is held, and do not let others read
	// or write. (For those who have it open for writing, Acquire waits.) Nil is no waiting. Defaults to nil.
	Wait *WaitOptions

	// Limit is the largest content that is read or written, in bytes. Defaults to 64 MiB.
	Limit int64

	// Hooks let the program watch. Defaults to silence.
	Hooks Hooks

	span int64 // see fileCall

	_ struct{}
}

// UpdateFile reads a file, lets change make a new content of the old one, and writes what is different, all under a lease:
// the only safe way to do so through REST, which has no conditions on files. While the lease is held, no other REST client
// can write, and no SMB client can open the file for writing or deletion; who has it open for that keeps us from
// beginning. Nothing is written when the contents are the same. change gets a copy of its own.
//
// Readers are not held off, and the content is written in ranges of 4 MiB after the file was given its size: who reads
// meanwhile may see a part of each. When the writing fails in between, or this process dies, that is what stays: the error
// is then a *TornError, and after a crash the lease stays too, which is how the next one notices (see BreakStale). A
// content of the same length that differs within one range is written with one request, and is not torn.
//
// Errors: ErrNotFound, as the file must exist; *HeldError; *InUseError; what change has returned; *LostError when the
// lease was broken before anything was written; *TornError; *UnknownError when the one request of the writing got no
// answer; *OpError. Requests: 3 to acquire, 1 for each 4 MiB read (2 for an empty file), 1 if the length changes, 1 for
// each 4 MiB that differ, 1 to release; and 2 for each heartbeat, every 10 s.
func UpdateFile(ctx context.Context, client *file.Client, change func(ctx context.Context, old []byte) ([]byte, error), opts *UpdateFileOptions) (FileWrite, error) {
	var o UpdateFileOptions
	if opts != nil {
		o = *opts
	}
	if client == nil {
		return FileWrite{}, errors.New("update: no client")
	}
	o.Limit = cmp.Or(o.Limit, 64<<20)
	c := newFileCall(client.URL(), o.Hooks).spans(o.span)
	if err := c.waits(client, o.Wait); err != nil {
		return FileWrite{}, err
	}
	var out FileWrite
	var err error
	out.Left, err = c.under(ctx, client, o.LeaseID, o.Acquire, func(ctx context.Context, id string) error {
		r := &fileReader{client: client, call: c, lease: id}
		old, err := r.limited(ctx, o.Limit)
		if err != nil {
			return err
		}
		content, err := change(ctx, bytes.Clone(old))
		if err != nil {
			return err
		}
		if err := withinLimit(c.path, int64(len(content)), o.Limit); err != nil {
			return err
		}
		w := &fileWriter{client: client, call: c, lease: id, size: int64(len(content))}
		err = w.outcome(ctx, w.update(ctx, r.first, old, content))
		out.Changed, out.Size, out.Ranges = w.begun, w.size, w.ranges
		return err
	})
	out.Requests = c.requests()
	return out, err
}

// limited reads a file into memory.
func (r *fileReader) limited(ctx context.Context, limit int64) ([]byte, error) {
	var content []byte
	_, err := r.all(ctx, -1, nil, func(part []byte) error {
		if content == nil {
			if err := withinLimit(r.call.path, r.first.size, limit); err != nil {
				return err
			}
			content = make([]byte, 0, r.first.size)
		}
		content = append(content, part...)
		return nil
	})
	return content, err
}

func withinLimit(path string, size, limit int64) error {
	if size > limit {
		return fmt.Errorf("%s: %d bytes are more than UpdateFileOptions.Limit, %d", path, size, limit)
	}
	return nil
}
