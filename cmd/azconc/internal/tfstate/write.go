package tfstate

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

var (
	// errStale means that the state is not at the version that the client has read.
	errStale = errors.New("the state is not the one that the client has read")
	// errUnread means that the client has not read the state.
	errUnread = errors.New("the state was not read before it was written")
)

// write answers a POST. id is the lock's, and empty for a client that does not lock. A write whose bytes are stored already
// is a success: a client whose answer was lost sends it again, and a first apply may send the same serial twice.
func (s *Session) write(id string, body []byte) answer {
	h := s.held
	switch {
	case h != nil && h.info.ID != id:
		return s.refuse(http.StatusLocked, "the state was not written: it is locked by %s", h.info.Who)
	case h == nil && id != "":
		return s.refuse(http.StatusConflict, "the state was not written: the lock with the ID %s is not held", id)
	}
	until := time.Now().Add(patience)
	if !s.kept {
		s.keep(until)
	}
	write := func() error { return s.writeOnce(id, body) }
	err := s.patiently(until, write)
	if azerr.Classify(err).Kind == azerr.Lost && h != nil && s.holds(h) {
		err = s.patiently(until, write)
	}
	switch {
	case err == nil:
		return done
	case errors.Is(err, errUnread):
		return s.refuse(http.StatusPreconditionRequired, "the state was not written: %v", err)
	case errors.Is(err, errStale), errors.Is(err, optimistic.ErrConflict):
		return s.refuse(http.StatusConflict, "the state was not written: %v", errStale)
	case azerr.Classify(err).Kind == azerr.Lost:
		return s.refuse(http.StatusConflict, "the state was not written: the lock was lost, and another run may hold it")
	case azerr.Classify(err).Kind == azerr.Held:
		if a, held := s.holder(); held {
			s.opts.Note("%s: the state was not written: another run holds the lock", s.opts.Name)
			return a
		}
	}
	return s.fail("the state was not written", err)
}

// patiently does something again for as long as the service may be reachable again.
func (s *Session) patiently(until time.Time, do func() error) error {
	for {
		err := do()
		out := azerr.Classify(err)
		if err == nil || !out.Transient() && !out.Ambiguous() || time.Now().After(until) {
			return err
		}
		if retry.Sleep(s.closing, 2*time.Second) != nil {
			return err
		}
	}
}

// writeOnce writes the state on the condition that it is the version that the client has read, and under the lease. What it
// finds decides, so it may be called again after any error.
func (s *Session) writeOnce(id string, body []byte) error {
	stored := false
	r, err := optimistic.Update(s.ctx, s.content, func(ctx context.Context, v *[]byte) error {
		at := optimistic.BaseOf(ctx)
		stored = at.Exists && bytes.Equal(*v, body)
		switch {
		case stored:
			s.base = base{known: true, etag: at.ETag, content: body}
			return optimistic.ErrSkip
		case !s.base.known:
			return errUnread
		case at.ETag != s.base.etag:
			return errStale
		}
		*v = body
		return nil
	}, &optimistic.UpdateOptions{Create: id == "", Conditions: optimistic.Conditions{LeaseID: id}})
	switch {
	case err != nil:
		return err
	case stored && id != "":
		return s.held.lease.Verify(s.ctx) // the write would have been refused if the lock were lost
	case r.Changed:
		s.base = base{known: true, etag: r.ETag, content: body}
		if r.ETag == "" { // the answer was lost, and the lineage proves that the write was applied
			s.rebase(body)
		}
	}
	return nil
}

// rebase notes the version that the state is at, if it is still the one that the client has written.
func (s *Session) rebase(body []byte) {
	if v, err := optimistic.Read(s.ctx, s.content, nil); err == nil && bytes.Equal(v.Value, body) {
		s.base = base{known: true, etag: v.ETag, content: body}
	}
}

// keep keeps the version before the first write of a lock, unless there is nothing to keep or the account keeps versions itself.
// A state that cannot be kept is written all the same: the resources that it describes exist.
func (s *Session) keep(until time.Time) {
	if err := s.patiently(until, s.keepOnce); err != nil {
		s.opts.Note("%s: the version before is not kept: %s", s.opts.Name, azerr.Summary(err))
	}
	s.kept = s.held != nil
}

// keepTry bounds the request for the properties, which the SDK alone would let wait for ever.
const keepTry = 10 * time.Second

func (s *Session) keepOnce() error {
	var p blob.GetPropertiesResponse
	err := wire.Wire{}.Once(s.ctx, "", keepTry, func(ctx context.Context) (err error) {
		p, err = s.content.Client.GetProperties(ctx, nil)
		return err
	})
	switch {
	case azerr.Has(err, "BlobNotFound"):
		return nil
	case err != nil, ptr.Value(p.ContentLength) == 0, ptr.Value(p.VersionID) != "":
		return err
	}
	_, err = blobs.Snapshot(s.ctx, s.container, s.name, nil)
	return err
}
