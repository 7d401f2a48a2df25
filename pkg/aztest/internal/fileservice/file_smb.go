package fileservice

import (
	"net/http"
	"slices"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// SMBHandle is aztest.SMBHandle.
type SMBHandle struct {
	ID, ClientName                     string
	Write, Delete                      bool
	ShareRead, ShareWrite, ShareDelete bool
}

// handle is a file that an SMB client has open.
type handle struct {
	SMBHandle
	path   string
	opened time.Time
	ranges [][2]int64 // locked: first and last byte
	stuck  bool       // the service fails to close it
}

// access is a set of ways to use a file.
type access uint8

const (
	reading access = 1 << iota
	writing
	deleting

	everything = reading | writing | deleting
)

// mode is how an SMB client, or an operation of REST, opens a file: for which access, and which it shares with others.
type mode struct{ access, share access }

func (h SMBHandle) mode() mode {
	return mode{
		access: reading | when(h.Write, writing) | when(h.Delete, deleting),
		share:  when(h.ShareRead, reading) | when(h.ShareWrite, writing) | when(h.ShareDelete, deleting),
	}
}

func when(on bool, a access) access {
	if on {
		return a
	}
	return 0
}

// modes are how operations open a file (REST: "Managing file locks", FileREST file access). They share everything, because they are
// short. Three cells are not in that table and follow from others on the page: a lease also reads, otherwise a file could be leased
// whose reading is denied; a lease shares only reading, so that a file that is open for writing or deletion cannot be leased; and a
// deletion shares nothing, because any handle prevents it.
var modes = map[string]mode{
	"Create File":         {writing | deleting, everything},
	"Copy File":           {writing | deleting, everything},
	"Get File":            {reading, everything},
	"Set File Properties": {writing, everything},
	"Set File Metadata":   {writing, everything},
	"Delete File":         {deleting, 0},
	"Put Range":           {writing, everything},
	"List Ranges":         {reading, everything},
	"Acquire File Lease":  {everything, reading},
}

// The statuses that OpenSMB returns, with SMB's names.
const (
	SMBOpened           = "STATUS_SUCCESS"
	SMBSharingViolation = "STATUS_SHARING_VIOLATION"
	SMBDeletePending    = "STATUS_DELETE_PENDING"
	SMBNotFound         = "STATUS_OBJECT_NAME_NOT_FOUND"
)

// OpenSMB, CloseSMB and the others that end in SMB implement those of aztest.Service.
func (s *Service) OpenSMB(shareName, path string, h SMBHandle) string {
	f := s.Find(shareName).files[path]
	switch {
	case f == nil:
		return SMBNotFound
	case f.pending:
		return SMBDeletePending
	case f.Lease.Active() && (h.Write || h.Delete):
		return SMBSharingViolation
	}
	if !f.admits(h.mode()) {
		return SMBSharingViolation
	}
	f.handles = append(f.handles, handle{SMBHandle: h, path: path, opened: storage.Now()})
	return SMBOpened
}

func (s *Service) CloseSMB(shareName, path, id string) { s.Find(shareName).close(path, id) }

// close closes the handles of a file that have an id, and returns their number. The last one takes with it a file whose deletion is
// pending.
func (sh *shareState) close(path, id string) int {
	f := sh.files[path]
	if f == nil {
		return 0
	}
	before := len(f.handles)
	f.handles = slices.DeleteFunc(f.handles, func(h handle) bool { return h.ID == id })
	closed := before - len(f.handles)
	if f.pending && len(f.handles) == 0 {
		delete(sh.files, path)
	}
	return closed
}

func (s *Service) MarkDeletedSMB(shareName, path string, marked bool) {
	f := s.Find(shareName).files[path]
	f.pending = marked && len(f.handles) > 0
}

func (s *Service) LockRangeSMB(shareName, path, id string, first, last int64) {
	s.change(shareName, path, id, func(h *handle) { h.ranges = append(h.ranges, [2]int64{first, last}) })
}

func (s *Service) StickSMB(shareName, path, id string) {
	s.change(shareName, path, id, func(h *handle) { h.stuck = true })
}

func (s *Service) change(shareName, path, id string, change func(*handle)) {
	f := s.Find(shareName).files[path]
	for i := range f.handles {
		if f.handles[i].ID == id {
			change(&f.handles[i])
		}
	}
}

// admits reports whether every handle of a file shares the access, and has none that is not shared in turn.
func (f *fileState) admits(m mode) bool {
	return !slices.ContainsFunc(f.handles, func(h handle) bool {
		other := h.mode()
		return m.access&^other.share != 0 || m.access != 0 && other.access&^m.share != 0
	})
}

// sharing refuses an operation that the handles of a file do not admit, and every operation while its deletion is pending.
func (f *fileState) sharing(operation string) *storage.Answer {
	switch {
	case f.pending:
		return storage.Fail(http.StatusConflict, "SMBDeletePending", "The specified resource is marked for deletion by an SMB client.")
	case !f.admits(modes[operation]):
		return storage.Fail(http.StatusConflict, "SharingViolation", "The specified resource may be in use by an SMB client.")
	}
	return nil
}

// rangeLocked refuses reading or writing bytes that a client has locked.
func (f *fileState) rangeLocked(r *storage.Request, content bool) *storage.Answer {
	if !content && r.Query.Get("comp") != "range" {
		return nil
	}
	first, last, _, _ := storage.Span(storage.RangeOf(r), f.content.Size)
	for _, h := range f.handles {
		for _, locked := range h.ranges {
			if first <= locked[1] && locked[0] <= last {
				return storage.Fail(http.StatusConflict, "FileLockConflict", "A portion of the specified file is locked by an SMB client.")
			}
		}
	}
	return nil
}
