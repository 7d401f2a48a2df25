package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// Handle is a file or directory that an SMB client has open. Fields that the service does not report are zero.
type Handle struct {
	ID          string
	Path        string // within the share
	ClientName  string
	ClientIP    string
	Access      []string // "Read", "Write", "Delete"
	Opened      time.Time
	Reconnected time.Time // zero if the client never had to reconnect
}

// String describes which client has it open, and with what access.
func (h Handle) String() string {
	who := h.ClientName
	switch {
	case who == "":
		who = h.ClientIP
	case h.ClientIP != "":
		who += " (" + h.ClientIP + ")"
	}
	if who == "" {
		who = "handle " + h.ID
	}
	if len(h.Access) > 0 {
		who += " for " + strings.ToLower(strings.Join(h.Access, ", "))
	}
	if !h.Opened.IsZero() {
		who += " since " + h.Opened.UTC().Format(time.RFC3339)
	}
	return who
}

// AllHandles stands for every handle in a call of ForceClose.
const AllHandles = "*"

// HandlesOptions configures Handles and ForceClose. The zero value selects the defaults.
type HandlesOptions struct {
	// Recursive includes files and directories open below a directory, at any depth. It is not allowed for files.
	// Defaults to false.
	Recursive bool

	// Hooks observe the operation. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// Handles lists the handles through which SMB clients have a file or directory open. The list is a snapshot and may be
// outdated when Handles returns. The service answers the same for a path whether it is addressed as a file or as a
// directory, so a directory client works for both. Errors: ErrNotFound, *azerr.OpError. Requests: 1 per 5,000 handles,
// retried after transient faults.
//
// Handles of NFS shares cannot be listed (REST: "List Handles").
func Handles[C file.Client | directory.Client](ctx context.Context, client *C, opts *HandlesOptions) ([]Handle, error) {
	open, c, err := handlesOf(client, opts)
	if err != nil {
		return nil, err
	}
	ctx, end := c.start(ctx, "Handles")
	handles, err := c.handles(ctx, open)
	end(err)
	return handles, err
}

// CloseResult is the result of ForceClose.
type CloseResult struct {
	Closed  int
	Failed  int  // handles that the service could not close
	AtLeast bool // a response was lost: more handles may have been closed than were counted
}

// ForceClose closes handles of SMB clients: those with the given ids, or AllHandles. A client notices when it next uses
// the handle, and loses data it has not flushed; it may open the file again at once. Closing a closed handle does no
// harm. ForceClose is meant for clients that hang, and does not replace ending an SMB session (REST: "Force Close
// Handles"). Errors: ErrHeld if some handles could not be closed, after all others were tried; ErrNotFound; *azerr.OpError.
// Requests: 1 per id; for AllHandles, 1 per batch of handles that the service closes.
func ForceClose[C file.Client | directory.Client](ctx context.Context, client *C, ids []string, opts *HandlesOptions) (sum CloseResult, err error) {
	open, c, err := handlesOf(client, opts)
	if err == nil && len(ids) == 0 {
		err = errors.New("force close: no handle id; use AllHandles for all of them")
	}
	if err != nil {
		return CloseResult{}, err
	}
	ctx, end := c.start(ctx, "ForceClose")
	defer func() { end(err) }()
	for _, id := range ids {
		for marker, more := "", true; more; more = marker != "" {
			var page CloseResult
			var next string
			unclear, err := c.send(ctx, "Force Close Handles", func(ctx context.Context) (err error) {
				page, next, err = open.close(ctx, id, marker)
				return err
			})
			sum.AtLeast = sum.AtLeast || unclear
			if err != nil {
				return sum, azerr.Op("close handles of", c.path, err)
			}
			sum.Closed, sum.Failed, marker = sum.Closed+page.Closed, sum.Failed+page.Failed, next
		}
	}
	if sum.Failed > 0 {
		return sum, fmt.Errorf("%s: %w: %d handles could not be closed", c.path, pessimistic.ErrHeld, sum.Failed)
	}
	return sum, nil
}

func handlesOf[C file.Client | directory.Client](client *C, opts *HandlesOptions) (handleTarget, *call, error) {
	o := ptr.Value(opts)
	if client == nil {
		return nil, nil, errors.New("handles: no client")
	}
	if d, ok := any(client).(*directory.Client); ok {
		return directoryHandles{d, o.Recursive}, newCall(d.URL(), o.Hooks), nil
	}
	if o.Recursive {
		return nil, nil, errors.New("HandlesOptions.Recursive: a file has nothing in it; ask a directory")
	}
	f := any(client).(*file.Client)
	return fileHandles{f}, newCall(f.URL(), o.Hooks), nil
}

func (c *call) handles(ctx context.Context, open handleTarget) ([]Handle, error) {
	var all []Handle
	for marker, more := "", true; more; more = marker != "" {
		var page []Handle
		var next string
		_, err := c.send(ctx, "List Handles", func(ctx context.Context) (err error) {
			page, next, err = open.list(ctx, marker)
			return err
		})
		if err != nil {
			return nil, azerr.Op("list handles of", c.path, err)
		}
		all, marker = append(all, page...), next
	}
	return all, nil
}

// handleTarget is a file or directory whose handles can be listed and closed: one request each.
type handleTarget interface {
	list(ctx context.Context, marker string) ([]Handle, string, error)
	close(ctx context.Context, id, marker string) (CloseResult, string, error)
}

type fileHandles struct{ client *file.Client }

func (f fileHandles) list(ctx context.Context, marker string) ([]Handle, string, error) {
	resp, err := f.client.ListHandles(ctx, &file.ListHandlesOptions{Marker: ptr.Optional(marker)})
	return read(resp.Handles), ptr.Value(resp.NextMarker), err
}

func (f fileHandles) close(ctx context.Context, id, marker string) (CloseResult, string, error) {
	resp, err := f.client.ForceCloseHandles(ctx, id, &file.ForceCloseHandlesOptions{Marker: ptr.Optional(marker)})
	return closed(resp.NumberOfHandlesClosed, resp.NumberOfHandlesFailedToClose), ptr.Value(resp.Marker), err
}

// directoryHandles are also those of a file at that path, which does not support recursion: it is sent only if it is requested.
type directoryHandles struct {
	client    *directory.Client
	recursive bool
}

func (d directoryHandles) list(ctx context.Context, marker string) ([]Handle, string, error) {
	resp, err := d.client.ListHandles(ctx, &directory.ListHandlesOptions{Marker: ptr.Optional(marker), Recursive: ptr.Optional(d.recursive)})
	return read(resp.Handles), ptr.Value(resp.NextMarker), err
}

func (d directoryHandles) close(ctx context.Context, id, marker string) (CloseResult, string, error) {
	resp, err := d.client.ForceCloseHandles(ctx, id, &directory.ForceCloseHandlesOptions{Marker: ptr.Optional(marker), Recursive: ptr.Optional(d.recursive)})
	return closed(resp.NumberOfHandlesClosed, resp.NumberOfHandlesFailedToClose), ptr.Value(resp.Marker), err
}

func closed(closed, failed *int32) CloseResult {
	return CloseResult{Closed: int(ptr.Value(closed)), Failed: int(ptr.Value(failed))}
}

func read(handles []*file.Handle) []Handle {
	var out []Handle
	for _, h := range handles {
		one := Handle{ID: ptr.Value(h.ID), Path: ptr.Value(h.Path), ClientName: ptr.Value(h.ClientName), ClientIP: ptr.Value(h.ClientIP),
			Opened: ptr.Value(h.OpenTime), Reconnected: ptr.Value(h.LastReconnectTime)}
		for _, right := range h.AccessRightList {
			one.Access = append(one.Access, string(ptr.Value(right)))
		}
		out = append(out, one)
	}
	return out
}
