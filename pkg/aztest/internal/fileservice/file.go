// Package fileservice is the File service of an account in memory: shares, directories, files, leases and handles of SMB clients.
//
// Route carries out one request, at once. Nothing here locks: package aztest calls a service with its lock held.
package fileservice

import (
	"cmp"
	"encoding/xml"
	"net/http"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Host is where the SDK's clients send requests to the File service: nothing listens there.
const Host = "127.0.0.1:10004"

// Service is the File service's part of the account.
type Service struct{ storage.Service[*shareState] }

type shareState struct {
	storage.Resource
	quota       string // in GiB
	files       map[string]*fileState
	directories map[string]*directoryState // except the root, which always exists
}

type directoryState struct {
	storage.Versioned
	id        string
	lastWrite time.Time
	metadata  map[string]string
}

type fileState struct {
	storage.Versioned
	id        string
	content   storage.Pages     // a file may have 4 TiB: only what was written takes memory
	lastWrite time.Time         // of the content, as opposed to metadata
	headers   map[string]string // Content-Type and the like
	metadata  map[string]string
	handles   []handle
	pending   bool // an SMB client has marked it for deletion
	readOnly  bool // the attribute
}

// New returns an empty File service of an account.
func New(a *storage.Account) *Service {
	s := &Service{}
	s.Account, s.Make = a, func() *shareState {
		sh := &shareState{quota: "5120", files: map[string]*fileState{}, directories: map[string]*directoryState{}}
		a.Touch(&sh.Versioned)
		return sh
	}
	return s
}

// Route carries out a request to the File service.
func (s *Service) Route(r *storage.Request) *storage.Answer {
	if a := storage.Refuse(storage.File, r); a != nil {
		return a
	}
	sh, comp := s.Find(r.Container), r.Query.Get("comp")
	handles := comp == "listhandles" || comp == "forceclosehandles"
	directory := r.Query.Get("restype") == "directory"
	switch {
	case r.Container == "" && comp == "list":
		return s.listShares(r)
	case r.Container == "":
		return s.Settings(r)
	case storage.InvalidName(r.Container) != nil:
		return storage.InvalidName(r.Container)
	case r.Query.Get("sharesnapshot") != "":
		return storage.NotImplemented() // without it, the request would be for the share itself
	case r.Blob == "" && !directory && !handles:
		return s.routeShare(r, sh)
	case sh == nil:
		return storage.Missing("Share")
	case sh.Gone():
		return storage.BeingDeleted("Share")
	case handles:
		return sh.handleOperation(r)
	case directory:
		return s.routeDirectory(r, sh)
	}
	return s.routeOneFile(r, sh)
}

type (
	shareList struct {
		XMLName    xml.Name      `xml:"EnumerationResults"`
		Shares     []listedShare `xml:"Shares>Share"`
		NextMarker string
	}
	listedShare struct {
		Name         string
		LastModified string `xml:"Properties>Last-Modified"`
		ETag         string `xml:"Properties>Etag"`
		Quota        string `xml:"Properties>Quota"`
	}
)

// listShares lists by name, in pages (REST: "List Shares").
func (s *Service) listShares(r *storage.Request) *storage.Answer {
	page, next, bad := s.Page(r)
	if bad != nil {
		return bad
	}
	list := shareList{NextMarker: next}
	for _, name := range page {
		sh := s.Find(name)
		list.Shares = append(list.Shares, listedShare{name, storage.StampOf(sh.LastModified), sh.ETag, sh.quota})
	}
	return storage.XML(list)
}

func (s *Service) routeShare(r *storage.Request, sh *shareState) *storage.Answer {
	comp := r.Query.Get("comp")
	switch {
	case r.Method == http.MethodPut && comp == "":
		return s.createShare(r)
	case sh == nil, sh.Gone() && r.Method == http.MethodGet:
		return storage.Missing("Share")
	case sh.Gone() && r.Method == http.MethodDelete:
		return storage.OK(http.StatusAccepted) // it is being deleted
	case sh.Gone():
		return storage.BeingDeleted("Share")
	case comp == "lease": // REST: "Lease Share": as for containers
		return sh.Lease.Operate(r).Version(&sh.Versioned)
	}
	if a := sh.Lease.Check(r, "Container", r.Method == http.MethodDelete); a != nil {
		return a
	}
	switch {
	case r.Method == http.MethodDelete: // leases of its files do not guard it (REST: "Lease File", remarks)
		sh.Deleted = time.Now()
		sh.files, sh.directories = map[string]*fileState{}, map[string]*directoryState{}
		return storage.OK(http.StatusAccepted)
	case r.Reads():
		a := sh.Show(r)
		if comp == "" {
			sh.Lease.Describe(a.Set("x-ms-share-quota", sh.quota).Set("x-ms-has-immutability-policy", "false").Set("x-ms-has-legal-hold", "false"))
		}
		return a
	case comp == "properties":
		sh.quota = cmp.Or(r.Header.Get("X-Ms-Share-Quota"), sh.quota)
	default:
		if bad := sh.Set(r); bad != nil {
			return bad
		}
	}
	s.Touch(&sh.Versioned)
	return storage.OK(http.StatusOK).Version(&sh.Versioned)
}

func (s *Service) createShare(r *storage.Request) *storage.Answer {
	sh, bad := s.Create(r, "Share")
	if bad != nil {
		return bad
	}
	sh.quota = cmp.Or(r.Header.Get("X-Ms-Share-Quota"), sh.quota)
	return storage.OK(http.StatusCreated).Version(&sh.Versioned)
}
