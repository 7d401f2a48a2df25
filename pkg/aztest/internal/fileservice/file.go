package fileservice

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/pages"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Host is where the SDK's clients send requests to the File service: nothing listens there.
const Host = "127.0.0.1:10004"

// Service is the File service's part of the account.
type Service struct {
	*storage.Account
	named      map[string]*shareState
	properties []byte // of the service, as they were set
}

type shareState struct {
	name         string
	etag         string
	lastModified time.Time
	metadata     map[string]string
	quota        string // in GiB
	acl          []byte
	lease        storage.Lease
	files        map[string]*fileState
	directories  map[string]*directoryState // except the root, which always exists
	deleted      time.Time
}

type directoryState struct {
	id           string
	lastWrite    time.Time
	etag         string
	lastModified time.Time
	metadata     map[string]string
}

type fileState struct {
	id           string
	content      pages.Pages // a file may have 4 TiB: only what was written takes memory
	etag         string
	lastModified time.Time
	lastWrite    time.Time         // of the content, as opposed to metadata
	headers      map[string]string // Content-Type and the like
	metadata     map[string]string
	lease        storage.Lease
	handles      []SMBHandle
	pending      bool // an SMB client has marked it for deletion
	readOnly     bool // the attribute
}

// share returns a share, even one that is being deleted. Nil means that the name is free.
func (s *Service) share(name string) *shareState {
	sh := s.named[name]
	if sh != nil && !sh.deleted.IsZero() && time.Since(sh.deleted) >= s.Options.Deletion {
		delete(s.named, name)
		return nil
	}
	return sh
}

func (s *Service) add(name string, metadata map[string]string) *shareState {
	if s.named == nil {
		s.named = map[string]*shareState{}
	}
	sh := &shareState{name: name, etag: s.NewETag(), lastModified: storage.Now(), metadata: metadata, quota: "5120", files: map[string]*fileState{}, directories: map[string]*directoryState{}}
	s.named[name] = sh
	return sh
}

// New returns an empty File service of an account.
func New(a *storage.Account) *Service { return &Service{Account: a} }

// Ensure creates a share if it is missing.
func (s *Service) Ensure(name string) {
	if s.share(name) == nil {
		s.add(name, nil)
	}
}

// Properties returns the service's settings, as they were set.
func (s *Service) Properties() []byte { return s.properties }

// Policies returns the stored access policies of a share.
func (s *Service) Policies(name string) []byte {
	if sh := s.share(name); sh != nil {
		return sh.acl
	}
	return nil
}

// IsFile reports whether a request is to the File service.
func IsFile(hr *http.Request) bool { return hr.URL.Host == Host }

// Operation names a request to the File service as the REST reference does.
func Operation(method, resource string, q url.Values, h http.Header) string {
	_, path, _ := strings.Cut(resource, "/")
	on, write := "File", method == http.MethodPut
	switch {
	case q.Get("restype") == "directory":
		on = "Directory"
	case path == "":
		on = "Share"
	}
	switch comp := q.Get("comp"); {
	case resource == "" && comp == "list":
		return "List Shares"
	case resource == "" && comp == "properties":
		return storage.Verb(write) + "File Service Properties"
	case comp == "acl":
		return storage.Verb(write) + "Share ACL"
	case comp == "rangelist":
		return "List Ranges"
	case comp == "lease":
		action := h.Get("X-Ms-Lease-Action")
		if action == "" {
			action = "?"
		}
		return strings.ToUpper(action[:1]) + action[1:] + " " + on + " Lease"
	case comp == "range":
		return "Put Range"
	case comp == "metadata":
		return storage.Verb(write) + on + " Metadata"
	case comp == "properties":
		return storage.Verb(write) + on + " Properties"
	case comp == "list":
		return "List Directories and Files"
	case comp == "listhandles":
		return "List Handles"
	case comp == "forceclosehandles":
		return "Force Close Handles"
	case comp != "":
		return method + " " + comp
	case write && h.Get("X-Ms-Copy-Source") != "":
		return "Copy File"
	case write:
		return "Create " + on
	case method == http.MethodDelete:
		return "Delete " + on
	case method == http.MethodGet && on == "File":
		return "Get File"
	}
	return "Get " + on + " Properties"
}

// Route carries out a request to the File service.
func (s *Service) Route(r *storage.Request) *storage.Answer {
	if r.Container == "" {
		if r.Method == http.MethodGet && r.Query.Get("comp") == "list" {
			return s.listShares(r)
		}
		if r.Query.Get("comp") == "properties" {
			return s.routeProperties(r)
		}
		return storage.NotImplemented()
	}
	if !storage.ContainerName.MatchString(r.Container) || len(r.Container) > 63 || len(r.Container) < 3 {
		return storage.Fail(http.StatusBadRequest, "InvalidResourceName", "The specified resource name contains invalid characters.")
	}
	if r.Query.Get("sharesnapshot") != "" {
		return storage.NotImplemented() // without it, the request would be for the share itself
	}
	sh, comp := s.share(r.Container), r.Query.Get("comp")
	directory := r.Query.Get("restype") == "directory" || comp == "listhandles" || comp == "forceclosehandles"
	if r.Blob == "" && !directory {
		return s.routeShare(r, sh)
	}
	switch {
	case sh == nil:
		return noSuchShare()
	case !sh.deleted.IsZero():
		return shareBeingDeleted()
	case comp == "listhandles" || comp == "forceclosehandles":
		return sh.handleOperation(r)
	case directory:
		return s.routeDirectory(r, sh)
	}
	return s.routeOneFile(r, sh)
}

// routeProperties reads and writes the service's settings: the last writer wins.
func (s *Service) routeProperties(r *storage.Request) *storage.Answer {
	if r.Method == http.MethodPut {
		s.properties = r.Body
		return storage.OK(http.StatusAccepted)
	}
	a := storage.OK(http.StatusOK).Set("Content-Type", "application/xml")
	if a.Body = s.properties; len(a.Body) == 0 {
		a.Body = []byte(xml.Header + "<StorageServiceProperties/>")
	}
	return a
}

// listShares lists by name, in pages (REST: "List Shares").
func (s *Service) listShares(r *storage.Request) *storage.Answer {
	if bad := storage.PageSizeOf(r); bad != nil {
		return bad
	}
	var shares []string
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		sh := s.share(name)
		if sh == nil || !sh.deleted.IsZero() || !strings.HasPrefix(name, r.Query.Get("prefix")) {
			continue
		}
		shares = append(shares, fmt.Sprintf("<Share><Name>%s</Name><Properties><Last-Modified>%s</Last-Modified><Etag>%s</Etag><Quota>%s</Quota></Properties></Share>",
			name, storage.StampOf(sh.lastModified), storage.Escaped(sh.etag), storage.Escaped(sh.quota)))
	}
	page, marker := pageOf(r, shares)
	a := storage.OK(http.StatusOK).Set("Content-Type", "application/xml")
	a.Body = []byte(xml.Header + "<EnumerationResults><Shares>" + strings.Join(page, "") + "</Shares><NextMarker>" + marker + "</NextMarker></EnumerationResults>")
	return a
}

func noSuchShare() *storage.Answer {
	return storage.Fail(http.StatusNotFound, "ShareNotFound", "The specified share does not exist.")
}

func shareBeingDeleted() *storage.Answer {
	return storage.Fail(http.StatusConflict, "ShareBeingDeleted", "The specified share is being deleted. Try operation later.")
}

var shareVerbs = storage.Verbs{"": "GET HEAD PUT DELETE", "metadata": "GET HEAD PUT", "acl": "GET HEAD PUT", "lease": "PUT", "properties": "PUT"}

func (s *Service) routeShare(r *storage.Request, sh *shareState) *storage.Answer {
	comp := r.Query.Get("comp")
	if a := shareVerbs.Refuse(r); a != nil {
		return a
	}
	if r.Method == http.MethodPut && comp == "" {
		switch {
		case sh != nil && sh.deleted.IsZero():
			return storage.Fail(http.StatusConflict, "ShareAlreadyExists", "The specified share already exists.")
		case sh != nil:
			return shareBeingDeleted()
		}
		metadata, a := storage.MetadataOf(r)
		if a != nil {
			return a
		}
		sh = s.add(r.Container, metadata)
		sh.quota = cmp.Or(r.Header.Get("X-Ms-Share-Quota"), sh.quota)
		return storage.OK(http.StatusCreated).Version(sh.etag, sh.lastModified)
	}
	switch {
	case sh == nil, !sh.deleted.IsZero() && r.Method == http.MethodGet:
		return noSuchShare()
	case !sh.deleted.IsZero() && r.Method == http.MethodDelete:
		return storage.OK(http.StatusAccepted) // it is being deleted
	case !sh.deleted.IsZero():
		return shareBeingDeleted()
	case comp == "lease": // REST: "Lease Share": as for containers
		return sh.lease.Operate(r).Version(sh.etag, sh.lastModified)
	}
	if a := sh.lease.Check(r, "Container", r.Method == http.MethodDelete); a != nil {
		return a
	}
	switch {
	case r.Method == http.MethodDelete: // leases of its files do not guard it (REST: "Lease File", remarks)
		sh.deleted = time.Now()
		sh.files, sh.directories = map[string]*fileState{}, map[string]*directoryState{}
		return storage.OK(http.StatusAccepted)
	case comp == "" && r.Method != http.MethodPut:
		a := storage.OK(http.StatusOK).Version(sh.etag, sh.lastModified).Describing(sh.metadata).Set("x-ms-share-quota", sh.quota).
			Set("x-ms-has-immutability-policy", "false").Set("x-ms-has-legal-hold", "false")
		sh.lease.Describe(a)
		return a
	case comp == "metadata" && r.Method != http.MethodPut:
		return storage.OK(http.StatusOK).Version(sh.etag, sh.lastModified).Describing(sh.metadata)
	case comp == "metadata":
		metadata, a := storage.MetadataOf(r)
		if a != nil {
			return a
		}
		sh.metadata = metadata
	case comp == "acl" && r.Method != http.MethodPut:
		a := storage.OK(http.StatusOK).Version(sh.etag, sh.lastModified).Set("Content-Type", "application/xml")
		if a.Body = sh.acl; len(a.Body) == 0 {
			a.Body = []byte(xml.Header + "<SignedIdentifiers/>")
		}
		return a
	case comp == "acl":
		policies, a := storage.PoliciesIn(r.Body)
		if a != nil {
			return a
		}
		sh.acl = policies
	case comp == "properties" && r.Method == http.MethodPut:
		sh.quota = cmp.Or(r.Header.Get("X-Ms-Share-Quota"), sh.quota)
	default:
		return storage.NotImplemented()
	}
	sh.etag, sh.lastModified = s.NewETag(), storage.Now()
	sh.lease.ForgetIfOver()
	return storage.OK(http.StatusOK).Version(sh.etag, sh.lastModified)
}
