package samba

import (
	"crypto/rand"
	"fmt"
	"net/http"
)

// fileLease is a file's lease: while it is active, an open that excludes writers and deletions, and the id of its
// holder. The states and outcomes are documented (REST: "Lease File"). Of the errors only the statuses are, so the
// codes are those of blobs.
type fileLease struct {
	id   string // kept after a break
	held *File  // nil unless it is active
}

func (l *fileLease) hold(b *Bridge, path string) error {
	f, err := b.client.Create(path, b.hold)
	if err != nil {
		return err
	}
	l.held = f
	return nil
}

func (l *fileLease) letGo() error {
	f := l.held
	l.held = nil
	if f == nil {
		return nil
	}
	return f.Close()
}

// forgetIfOver makes a broken lease available after a write.
func (l *fileLease) forgetIfOver() {
	if l.held == nil {
		l.id = ""
	}
}

func (l *fileLease) describe(h http.Header) {
	state, status := "available", "unlocked"
	switch {
	case l.held != nil:
		state, status = "leased", "locked"
		h.Set("x-ms-lease-duration", "infinite")
	case l.id != "":
		state = "broken"
	}
	h.Set("x-ms-lease-state", state)
	h.Set("x-ms-lease-status", status)
}

// check implements the table of use attempts.
func (l *fileLease) check(id string, write bool) error {
	switch {
	case l.held == nil && id != "" && l.id != "":
		return refused(http.StatusPreconditionFailed, "LeaseLost", "A lease ID was specified, but the lease for the file has expired.")
	case l.held == nil && id != "":
		return refused(http.StatusPreconditionFailed, "LeaseNotPresentWithFileOperation", "There is currently no lease on the file.")
	case l.held == nil:
		return nil
	case id == "" && write:
		return refused(http.StatusPreconditionFailed, "LeaseIdMissing", "There is currently a lease on the file and no lease ID was specified in the request.")
	case id != "" && id != l.id:
		return refused(http.StatusConflict, "LeaseIdMismatchWithFileOperation", "The lease ID specified did not match the lease ID for the file.")
	}
	return nil
}

// lease implements the table of lease operations.
func (b *Bridge) lease(w http.ResponseWriter, r *request, l *fileLease) error {
	id, proposed := r.in.Get("x-ms-lease-id"), r.in.Get("x-ms-proposed-lease-id")
	mismatch := refused(http.StatusConflict, "LeaseIdMismatchWithLeaseOperation", "The lease ID specified did not match the lease ID for the file.")
	absent := refused(http.StatusConflict, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the file.")
	status := http.StatusOK
	switch r.in.Get("x-ms-lease-action") {
	case "acquire":
		status = http.StatusCreated
		if r.in.Get("x-ms-lease-duration") != "-1" {
			return errInvalidHeader
		}
		if l.held != nil && (proposed == "" || proposed != l.id) {
			return refused(http.StatusConflict, "LeaseAlreadyPresent", "There is already a lease present.")
		}
		if proposed == "" {
			proposed = newID()
		}
		if l.held == nil {
			if err := b.acquire(r, l); err != nil {
				return err
			}
		}
		l.id = proposed
	case "change":
		switch {
		case l.held == nil:
			return absent
		case id != l.id && proposed != l.id:
			return mismatch
		}
		l.id = proposed
	case "release":
		switch {
		case l.id == "":
			return absent
		case id != l.id:
			return mismatch
		}
		if err := l.letGo(); err != nil {
			return err
		}
		l.id = ""
	case "break":
		if l.id == "" {
			return absent
		}
		if err := l.letGo(); err != nil {
			return err
		}
		status = http.StatusAccepted
		r.out.Set("x-ms-lease-time", "0")
	default:
		return errInvalidHeader
	}
	r.out.Set("x-ms-lease-id", l.id)
	w.WriteHeader(status)
	return nil
}

// acquire first opens the file with every access that a lease excludes, to check that no other client has one of them.
// For the duration of the lease it opens the file for reading only: an open for writing would exclude readers that
// share only reading. The second open detects a client that opens the file in between.
func (b *Bridge) acquire(r *request, l *fileLease) error {
	f, err := b.client.Create(r.path, b.opens[opLease])
	if err != nil {
		return b.whyNot(r, err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	return l.hold(b, r.path)
}

func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
