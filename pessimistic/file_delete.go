package pessimistic

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pkg/azerr"
)

// DeleteFileOptions tunes DeleteFile. The zero value is the default.
type DeleteFileOptions struct {
	// Wait waits for SMB clients that have the file open, and for the end of a deletion that one of them has begun. Nil
	// is no waiting; a zero WaitOptions waits for as long as ctx lasts. Defaults to nil.
	Wait *WaitOptions

	// LeaseID is the id of a lease that the caller holds on the file. Defaults to none.
	LeaseID string

	// Hooks let the program watch. Defaults to silence.
	Hooks Hooks

	_ struct{}
}

// Deletion is how a file came to be gone.
type Deletion string

// The ways.
const (
	// DeletedByUs: the service has confirmed our deletion.
	DeletedByUs Deletion = "deleted"
	// DeletedBySMB: an SMB client had marked it for deletion, and the last handle was closed.
	DeletedBySMB Deletion = "deleted_by_smb"
	// DeletedUnclear: it was there when we looked and then it was gone, by our deletion, whose answer was lost, or by
	// another's.
	DeletedUnclear Deletion = "gone"
)

// DeletedFile is what DeleteFile has done.
type DeletedFile struct {
	How       Deletion // empty when it has failed
	Waited    time.Duration
	Requests  int
	Ambiguous int // deletions that got no answer, or one that leaves open whether they were carried out
}

// DeleteFile deletes a file. A deletion that an SMB client has begun is neither success nor absence: the file is not
// there for anybody, but the client may take the mark back. So DeleteFile waits for what it comes to, if it may wait; it
// does not delete by itself what was marked and then kept.
//
// FileREST knows no conditions, so a deletion that is sent again could hit a file that somebody has made meanwhile under
// the same name. That is why the file's id is looked at first, and again when an answer is lost: only the same file is
// deleted a second time. Under a lease the look is not needed, as the lease is gone with the file. A request that the
// network holds back until after the call remains; only a lease guards against it.
//
// Errors: ErrNotFound; *InUseError, when there is no waiting or its time is over; ErrUndeleted; *HeldError when the file
// is leased by another; *LostError when LeaseID is not valid any more; *UnknownError; *OpError, a read-only file among
// them. Requests: 2, or 1 with LeaseID; then 1 for each attempt while waiting, and 1 for the names in an error.
func DeleteFile(ctx context.Context, client *file.Client, opts *DeleteFileOptions) (DeletedFile, error) {
	var o DeleteFileOptions
	if opts != nil {
		o = *opts
	}
	if client == nil {
		return DeletedFile{}, errors.New("delete: no client")
	}
	d := &deleting{client: client, call: newFileCall(client.URL(), o.Hooks), lease: o.LeaseID}
	err := d.call.waits(client, o.Wait)
	if err != nil {
		return DeletedFile{}, err
	}
	began := time.Now()
	if d.call.wait != nil {
		err = d.call.wait.until(ctx, d.try)
	} else {
		err = d.try(ctx)
	}
	if d.tries > 1 {
		d.done.Waited = time.Since(began)
	}
	d.done.Requests = d.call.requests()
	return d.done, d.outcome(ctx, err)
}

// deleting is one deletion under way.
type deleting struct {
	client *file.Client
	call   *fileCall
	lease  string
	id     string // the file's, as the first look has shown it

	looked  bool
	pending bool // an SMB client has marked it
	doubt   bool // a deletion got no answer, and nothing was seen since
	tries   int  // the first, and one after each wait
	done    DeletedFile
}

// try goes on until the file is gone, an SMB client is in the way, or it cannot be.
func (d *deleting) try(ctx context.Context) error {
	d.tries++
	again := fileBudget().Start()
	for {
		if d.pending || d.lease == "" && (!d.looked || d.doubt) {
			if end, err := d.look(ctx); end || err != nil {
				return err
			}
		}
		err := d.call.once(ctx, "delete", func(ctx context.Context) error {
			_, err := d.client.Delete(ctx, &file.DeleteOptions{LeaseAccessConditions: leasedBy(d.lease)})
			return err
		})
		o := azerr.Classify(err)
		if o.Ambiguous() {
			d.done.Ambiguous++
			d.doubt = true
		}
		switch {
		case err == nil:
			d.done.How = DeletedByUs
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case o.Kind == azerr.NotFound && o.Code != "" && (d.done.Ambiguous > 0 || d.looked):
			d.done.How = DeletedUnclear
			return nil
		}
		if reason, used := inUse(err); used {
			d.pending, d.doubt = reason == azerr.DeletePending, o.Ambiguous()
			return err
		}
		if !o.Transient() || again.Next(ctx, o.RetryAfter) != nil {
			return err
		}
	}
}

// look sees whether the file is the one that is to be deleted. end says that there is nothing left to be done.
func (d *deleting) look(ctx context.Context) (end bool, err error) {
	var id string
	_, err = d.call.repeat(ctx, "look at", func(ctx context.Context) error {
		resp, err := d.client.GetProperties(ctx, nil)
		id = deref(resp.ID)
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
		return true, &UnknownError{Op: "delete", Resource: d.call.path, Why: "the file is there, and may have been made anew", Err: errNoID}
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

var errNoID = errors.New("the service does not tell the file's id")

// outcome is the error for the caller.
func (d *deleting) outcome(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUndeleted):
		return &OpError{Op: "delete", Resource: d.call.path, Err: err}
	case d.doubt && !errors.Is(err, ErrHeld) && !errors.Is(err, ErrUnknown):
		why := "nothing was seen of the file since"
		if azerr.Classify(err).Kind == azerr.Lost {
			why = "the lease is over: because the file was deleted and made anew, or because somebody broke it"
		}
		return &UnknownError{Op: "delete", Resource: d.call.path, Why: why, Err: err}
	}
	return d.call.refusal(ctx, "delete", false, err)
}
