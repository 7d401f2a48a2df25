package fileservice

import (
	"net/http"
	"slices"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// SMBHandle is a file or directory that an SMB client has open. Other clients cannot get the access that it does not
// share.
type SMBHandle struct {
	ID         string
	ClientName string
	Write      bool // the access that it was opened with, in addition to reading
	Delete     bool
	ShareRead  bool // the access that it shares
	ShareWrite bool

	path   string
	opened time.Time
	ranges [][2]int64 // locked: first and last byte
	stuck  bool       // the service fails to close it
}

// The statuses that OpenSMB returns, with SMB's names.
const (
	SMBOpened           = "STATUS_SUCCESS"
	SMBSharingViolation = "STATUS_SHARING_VIOLATION"
	SMBDeletePending    = "STATUS_DELETE_PENDING"
	SMBNotFound         = "STATUS_OBJECT_NAME_NOT_FOUND"
)

// OpenSMB opens a file as an SMB client does, and returns its status. It is refused if another handle does not share
// the access, or has an access that this one does not share; if the file is leased and is opened for writing or
// deletion; and if its deletion is pending (REST: "Managing file locks", "Lease File").
func (s *Service) OpenSMB(shareName, path string, h SMBHandle) string {
	f := s.named[shareName].files[path]
	switch {
	case f == nil:
		return SMBNotFound
	case f.pending:
		return SMBDeletePending
	case f.lease.Active() && (h.Write || h.Delete):
		return SMBSharingViolation
	}
	for _, other := range f.handles {
		if !other.ShareRead || !h.ShareRead || h.Write && !other.ShareWrite || other.Write && !h.ShareWrite {
			return SMBSharingViolation
		}
	}
	h.path, h.opened = path, storage.Now()
	f.handles = append(f.handles, h)
	return SMBOpened
}

// CloseSMB closes a handle. The last one takes with it a file whose deletion is pending.
func (s *Service) CloseSMB(shareName, path, id string) {
	s.named[shareName].close(path, func(h SMBHandle) bool { return h.ID == id })
}

// close closes the selected handles of a file, and returns their number.
func (sh *shareState) close(path string, meant func(SMBHandle) bool) int {
	f := sh.files[path]
	if f == nil {
		return 0
	}
	before := len(f.handles)
	f.handles = slices.DeleteFunc(f.handles, meant)
	closed := before - len(f.handles)
	if f.pending && len(f.handles) == 0 {
		delete(sh.files, path)
	}
	return closed
}

// MarkDeletedSMB sets or clears the mark with which an SMB client deletes an open file. It has an effect only while the
// file is open (REST: "Managing file locks", SMB delete).
func (s *Service) MarkDeletedSMB(shareName, path string, marked bool) {
	f := s.named[shareName].files[path]
	f.pending = marked && len(f.handles) > 0
}

// LockRangeSMB locks bytes of a file through one of its handles, until the handle closes.
func (s *Service) LockRangeSMB(shareName, path, id string, first, last int64) {
	s.change(shareName, path, id, func(h *SMBHandle) { h.ranges = append(h.ranges, [2]int64{first, last}) })
}

// StickSMB makes the service fail to close a handle by force.
func (s *Service) StickSMB(shareName, path, id string) {
	s.change(shareName, path, id, func(h *SMBHandle) { h.stuck = true })
}

func (s *Service) change(shareName, path, id string, change func(*SMBHandle)) {
	f := s.named[shareName].files[path]
	for i := range f.handles {
		if f.handles[i].ID == id {
			change(&f.handles[i])
		}
	}
}

// sharing is the access that an operation needs from the handles of a file (REST: "Managing file locks", the table of
// sharing modes): an access that a handle does not share is refused, and a deletion is refused with any handle.
func (f *fileState) sharing(read, write, alone bool) *storage.Answer {
	if f.pending {
		return storage.Fail(http.StatusConflict, "SMBDeletePending", "The specified resource is marked for deletion by an SMB client.")
	}
	for _, h := range f.handles {
		if alone || read && !h.ShareRead || write && !h.ShareWrite {
			return sharingViolation()
		}
	}
	return nil
}

func sharingViolation() *storage.Answer {
	return storage.Fail(http.StatusConflict, "SharingViolation", "The specified resource may be in use by an SMB client.")
}

// rangeLocked refuses reading or writing bytes that a client has locked.
func (f *fileState) rangeLocked(r *storage.Request, content bool) *storage.Answer {
	if !content && r.Query.Get("comp") != "range" {
		return nil
	}
	first, last, err := storage.ParseRange(storage.RangeOf(r))
	if err != nil || last < 0 {
		last = f.content.Size - 1
	}
	for _, h := range f.handles {
		for _, locked := range h.ranges {
			if first <= locked[1] && locked[0] <= last {
				return storage.Fail(http.StatusConflict, "FileLockConflict", "A portion of the specified file is locked by an SMB client.")
			}
		}
	}
	return nil
}
