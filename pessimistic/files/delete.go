package files

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// DeleteOptions configures Delete. The zero value selects the defaults.
type DeleteOptions struct {
	// Wait makes Delete wait for SMB clients that have the file open, and for the end of a deletion that one of
	// them has begun. Nil means not to wait; a zero WaitOptions waits for as long as ctx lasts. Defaults to nil.
	Wait *WaitOptions

	// LeaseID is the id of a lease that the caller holds on the file. Defaults to none.
	LeaseID string

	// Hooks observe the operation. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// Deletion is how a file was deleted.
type Deletion string

// The ways.
const (
	// DeletedByUs: the service has confirmed the deletion by this call.
	DeletedByUs Deletion = "deleted"
	// DeletedBySMB: an SMB client had marked it for deletion, and the last handle was closed.
	DeletedBySMB Deletion = "deleted_by_smb"
	// DeletedUnclear: the file existed at the first look and was gone later, either by this call's deletion, whose
	// response was lost, or by another client's.
	DeletedUnclear Deletion = "gone"
)

// DeleteResult is the result of Delete.
type DeleteResult struct {
	How       Deletion // empty on failure
	Waited    time.Duration
	Requests  int
	Ambiguous int // deletions without a response, or with one that does not tell whether they were applied
}

// Delete deletes a file. It treats a deletion that an SMB client has begun neither as success nor as absence:
// nobody can use the file, but the client may still clear the mark. So Delete waits for the outcome, if it may
// wait; it does not itself delete a file that was marked and then kept.
//
// FileREST has no conditional requests, so a repeated deletion could delete a file that another client has meanwhile
// created under the same name. Hence Delete reads the file's id first, and again after a lost response: it sends a
// second deletion only for the same file. Under a lease this is not needed, as the lease is gone with the file. One gap
// remains: a request that the network delays until after the call; only a lease guards against it.
//
// Errors: ErrNotFound; *InUseError if Wait is nil or has passed; ErrUndeleted; *HeldError if another client holds a
// lease on the file; *LostError if LeaseID is no longer valid; *UnknownError; *azerr.OpError, for example for a read-only
// file. Requests: 2, or 1 with LeaseID; then 1 for each attempt while waiting, and 1 for the handles listed in an
// error.
func Delete(ctx context.Context, client *file.Client, opts *DeleteOptions) (DeleteResult, error) {
	o := ptr.Value(opts)
	c, err := fileCall("delete", client, o.Hooks, o.Wait, ranges{})
	if err != nil {
		return DeleteResult{}, err
	}
	d := &deleting{client: client, call: c, lease: o.LeaseID}
	ctx, end := c.start(ctx, "Delete")
	began := time.Now()
	if d.call.wait != nil {
		err = d.call.wait.until(ctx, nil, d.try)
	} else {
		err = d.try(ctx)
	}
	if d.tries > 1 {
		d.done.Waited = time.Since(began)
	}
	d.done.Requests = d.call.requests()
	err = d.outcome(ctx, err)
	end(err)
	return d.done, err
}

// deleting is one deletion in progress.
type deleting struct {
	client *file.Client
	call   *call
	lease  string
	id     string // the file's id, from the first look

	looked  bool
	pending bool // an SMB client has marked it for deletion
	doubt   bool // a deletion got no response, and there was no look since
	tries   int  // deletions sent: the first, and one after each wait
	done    DeleteResult
}

// try continues until the file is gone, an SMB client uses it, or it cannot be deleted.
func (d *deleting) try(ctx context.Context) error {
	d.tries++
	again := wire.Again{Try: tryTimeout, Budget: budget(), Before: d.before, Judge: d.judge}
	_, err := d.call.wire().Send(ctx, "Delete File", again, func(ctx context.Context) error {
		_, err := d.client.Delete(ctx, &file.DeleteOptions{LeaseAccessConditions: leasedBy(d.lease)})
		switch {
		case err == nil:
			d.done.How = DeletedByUs
		case azerr.Classify(err).Ambiguous():
			d.done.Ambiguous++
			d.doubt = true
		}
		return err
	})
	return err
}

// before looks at the file if the next deletion could otherwise delete another one of that name.
func (d *deleting) before(ctx context.Context, _ wire.Sent) (done bool, err error) {
	if d.pending || d.lease == "" && (!d.looked || d.doubt) {
		return d.look(ctx)
	}
	return false, nil
}

func (d *deleting) judge(_ context.Context, f wire.Failed) (wire.Verdict, error) {
	if f.Outcome.Kind == azerr.NotFound && f.Outcome.Code != "" && (d.done.Ambiguous > 0 || d.looked) {
		d.done.How = DeletedUnclear
		return wire.Final, nil
	}
	if reason, used := inUse(f.Err); used {
		d.pending, d.doubt = reason == azerr.DeletePending, f.Outcome.Ambiguous()
		return wire.Final, f.Err
	}
	return f.Usual()
}

// look checks whether the file is the one to delete. end reports that nothing is left to do.
func (d *deleting) look(ctx context.Context) (end bool, err error) {
	var id string
	_, err = d.call.repeat(ctx, "Get File Properties", func(ctx context.Context) error {
		resp, err := d.client.GetProperties(ctx, nil)
		id = ptr.Value(resp.ID)
		return err
	})
	o := azerr.Classify(err)
	switch {
	case err == nil && d.pending:
		return true, ErrUndeleted
	case err == nil && !d.looked:
		d.looked, d.id = true, id
		return false, nil
	case err == nil && (id == "" || d.id == ""):
		return true, &pessimistic.UnknownError{Op: "delete", Resource: d.call.path, Why: "the file is there, and may have been recreated", Err: errNoID}
	case err == nil && id != d.id, err != nil && o.Kind == azerr.NotFound && d.doubt:
		d.done.How = DeletedUnclear
		return true, nil
	case err == nil:
		d.doubt = false
		return false, nil
	case o.Kind == azerr.NotFound && d.pending:
		d.done.How = DeletedBySMB
		return true, nil
	}
	if o.Reason == azerr.DeletePending {
		d.pending = true
	}
	return true, err
}

var errNoID = errors.New("the response has no file id")

// outcome returns the error for the caller.
func (d *deleting) outcome(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUndeleted):
		return &azerr.OpError{Op: "delete", Resource: d.call.path, Err: err}
	case d.doubt && !errors.Is(err, pessimistic.ErrHeld) && !errors.Is(err, pessimistic.ErrOutcomeUnknown):
		why := "nothing was seen of the file since"
		if azerr.Classify(err).Kind == azerr.Lost {
			why = "the lease is over: because the file was deleted and recreated, or because another client broke it"
		}
		return &pessimistic.UnknownError{Op: "delete", Resource: d.call.path, Why: why, Err: err}
	}
	return d.call.refusal(ctx, "delete", false, err)
}
