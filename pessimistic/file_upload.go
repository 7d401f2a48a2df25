package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/azerr"
)

// UploadFileOptions tunes UploadFile. The zero value is the default.
type UploadFileOptions struct {
	// Create makes the file if it is missing. The service cannot be asked for that: it makes a file over one that was made
	// in the same moment, whose content is then lost. Defaults to false.
	Create bool

	// Headers are the HTTP headers of a file that is made. One that is there keeps its own, but for the hash of the
	// content. Defaults to none.
	Headers *file.HTTPHeaders

	// Acquire says how to get the lease, above all how long to wait for another holder. Its Hooks default to Hooks.
	Acquire AcquireOptions

	// LeaseID is the id of a lease that the caller holds already. Defaults to none: one is acquired, and released.
	LeaseID string

	// Wait waits for SMB clients that have the file open for reading, when the lease is held, and do not let others
	// write. Nil is no waiting. Defaults to nil.
	Wait *WaitOptions

	// Hooks let the program watch. Defaults to silence.
	Hooks Hooks

	span int64 // see fileCall

	_ struct{}
}

// UploadFile replaces a file's content by what it reads from content, which must have size bytes, under a lease: of two
// who upload at the same time, the file has the content of one, not parts of both. Memory: one range of 4 MiB.
//
// What is said of readers and of a writing that fails is the same as for UpdateFile. A content that cannot be read to its
// end leaves a torn file too, but nothing is changed before its first 4 MiB were read.
//
// Errors: ErrNotFound, without Create or when the directory is missing; *HeldError; *InUseError; *LostError; *TornError;
// *UnknownError; *OpError. Requests: 3 to acquire, 1 to look, 1 if the length changes, 1 for each 4 MiB, 1 to release,
// and 2 for each heartbeat, every 10 s; for a file that is made, 2 more, and none for the length.
func UploadFile(ctx context.Context, client *file.Client, content io.Reader, size int64, opts *UploadFileOptions) (FileWrite, error) {
	var o UploadFileOptions
	if opts != nil {
		o = *opts
	}
	switch {
	case client == nil:
		return FileWrite{}, errors.New("upload: no client")
	case size < 0:
		return FileWrite{}, fmt.Errorf("upload: size: %d is negative", size)
	}
	c := newFileCall(client.URL(), o.Hooks).spans(o.span)
	if err := c.waits(client, o.Wait); err != nil {
		return FileWrite{}, err
	}
	out, reached := FileWrite{Size: size}, false
	write := func(ctx context.Context, id string) error {
		reached = true
		w := &fileWriter{client: client, call: c, lease: id, size: size, begun: out.Created}
		was, err := seeFile(ctx, client, c, id)
		if err == nil {
			err = w.upload(ctx, was, content)
		}
		out.Changed, out.Ranges = w.begun, w.ranges
		return w.outcome(ctx, err)
	}
	left, err := c.under(ctx, client, o.LeaseID, o.Acquire, write)
	if o.Create && o.LeaseID == "" && !reached && errors.Is(err, ErrNotFound) {
		if out.Created, err = c.create(ctx, client, size, o.Headers); err == nil {
			left, err = c.under(ctx, client, "", o.Acquire, write)
		} else {
			err = c.refusal(ctx, "create", true, err)
		}
	}
	out.Left, out.Requests = left, c.requests()
	return out, err
}

// create makes a file of zeros where there was none. made is false when somebody else has made it meanwhile, and leased or
// opened it. When an answer is lost it is made again: its content is about to be replaced anyway.
func (c *fileCall) create(ctx context.Context, client *file.Client, size int64, headers *file.HTTPHeaders) (made bool, err error) {
	again := fileBudget().Start()
	for {
		err := c.once(ctx, "create", func(ctx context.Context) error {
			_, err := client.Create(ctx, size, &file.CreateOptions{HTTPHeaders: headers})
			return err
		})
		o := azerr.Classify(err)
		switch {
		case err == nil:
			return true, nil
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case o.Kind == azerr.Held: // somebody has made it, and leased or opened it
			return false, nil
		case !o.Transient() || again.Next(ctx, o.RetryAfter) != nil:
			return false, err
		}
	}
}
