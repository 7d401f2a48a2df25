package files

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// UploadOptions configures Upload. The zero value selects the defaults.
type UploadOptions struct {
	// Create creates the file if it does not exist. The service offers no atomic way: a file that another client
	// creates at the same moment is overwritten, and its content lost. Defaults to false.
	Create bool

	// Headers are the HTTP headers of a file that is created. An existing file keeps its own, except for the content
	// hash. Defaults to none.
	Headers *file.HTTPHeaders

	// Acquire configures the acquisition of the lease, above all how long to wait for another holder. Its Hooks default
	// to Hooks.
	Acquire pessimistic.AcquireOptions

	// LeaseID is the id of a lease that the caller already holds. Defaults to none: a lease is acquired and released.
	LeaseID string

	// Wait makes Upload wait, once it holds the lease, for SMB clients that have the file open for reading and do
	// not let others write. Nil means not to wait. Defaults to nil.
	Wait *WaitOptions

	// Hooks observe the operation. Defaults to none.
	Hooks observe.Hooks

	ranges ranges

	_ struct{}
}

// Upload replaces a file's content with size bytes read from content, under a lease: after two concurrent uploads
// the file has the content of one of them, not parts of both. Memory: 20 MiB.
//
// Ranges of zeros are not sent: those behind the old length need no request, and others are cleared, which also frees
// their space.
//
// Concurrent readers and failed writes are as described at Update. If content cannot be read to its end, the file
// is left torn as well, but nothing is changed before the first 4 MiB have been read.
//
// Errors: ErrNotFound, without Create or if the directory does not exist; *HeldError; *InUseError; *LostError;
// *TornError; *UnknownError; *azerr.OpError. Requests: 3 to acquire, 1 to look, 1 if the length changes, 1 per 4 MiB, 1 to
// release, and 2 per heartbeat, every 10 s; for a file that is created, 2 more, and none for the length; none for
// 4 MiB of zeros behind the old length.
func Upload(ctx context.Context, client *file.Client, content io.Reader, size int64, opts *UploadOptions) (WriteResult, error) {
	o := ptr.Value(opts)
	if size < 0 {
		return WriteResult{}, fmt.Errorf("upload: size: %d is negative", size)
	}
	c, err := fileCall("upload", client, o.Hooks, o.Wait, o.ranges)
	if err != nil {
		return WriteResult{}, err
	}
	ctx, end := c.start(ctx, "Upload")
	defer func() { end(err) }()
	out, reached := WriteResult{Size: size}, false
	write := func(ctx context.Context, id string) error {
		reached = true
		w := &writer{client: client, call: c, lease: id, size: size, begun: out.Created}
		was, err := see(ctx, client, c, id)
		if err == nil {
			err = w.upload(ctx, was, content)
		}
		out.Changed, out.Ranges = w.begun, w.ranges
		return w.outcome(ctx, err)
	}
	left, err := c.under(ctx, client, o.LeaseID, o.Acquire, write)
	if o.Create && o.LeaseID == "" && !reached && errors.Is(err, pessimistic.ErrNotFound) {
		if out.Created, err = c.create(ctx, client, size, o.Headers); err == nil {
			left, err = c.under(ctx, client, "", o.Acquire, write)
		} else {
			err = c.refusal(ctx, "create", true, err)
		}
	}
	out.Left, out.Requests = left, c.requests()
	return out, err
}

// create creates a file of zeros if there was none. made is false if another client has created it meanwhile, and
// leased or opened it. After a lost response the file is created again: its content is about to be replaced anyway.
func (c *call) create(ctx context.Context, client *file.Client, size int64, headers *file.HTTPHeaders) (made bool, err error) {
	made = true
	again := wire.Again{Try: tryTimeout, Budget: budget(), Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
		if f.Outcome.Kind == azerr.Held {
			made = false
			return wire.Final, nil
		}
		return f.Usual()
	}}
	_, err = c.wire().Send(ctx, "Create File", again, func(ctx context.Context) error {
		_, err := client.Create(ctx, size, &file.CreateOptions{HTTPHeaders: headers})
		return err
	})
	return made && err == nil, err
}
