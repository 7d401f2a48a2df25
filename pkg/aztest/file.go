package aztest

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

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"

	"github.com/azconc/azconc/pkg/aztest/internal/pages"
)

const fileHost = "127.0.0.1:10004"

// FileURL is the File service's URL for clients whose transport is the Service. No emulator has this service.
func (s *Service) FileURL() string { return "http://" + fileHost + "/" + Account }

// FileHandler serves the File service over HTTP, at /devstoreaccount1. A lost response closes the connection.
func (s *Service) FileHandler() http.Handler { return s.injector.handler(fileHost) }

// FileService returns a client for the File service.
func (s *Service) FileService() *service.Client {
	credential, err := service.NewSharedKeyCredential(Account, Key)
	if err != nil {
		panic(err) // the constants are wrong
	}
	client, err := service.NewClientWithSharedKeyCredential(s.FileURL(), credential, &service.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		panic(err)
	}
	return client
}

// Share returns a client for a share, and creates the share if it is missing, without a request.
func (s *Service) Share(name string) *share.Client {
	s.mu.Lock()
	if s.files.share(s, name) == nil {
		s.files.add(s, name, nil)
	}
	s.mu.Unlock()
	return s.FileService().NewShareClient(name)
}

// File returns a client for a file, which need not exist, in the root of a share, which is created if it is missing.
func (s *Service) File(shareName, name string) *file.Client {
	return s.Share(shareName).NewRootDirectoryClient().NewFileClient(name)
}

// shares is the File service's part of the account.
type shares struct {
	named map[string]*shareState
}

type shareState struct {
	name         string
	etag         string
	lastModified time.Time
	metadata     map[string]string
	quota        string // in GiB
	lease        lease
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
	lease        lease
	handles      []SMBHandle
	pending      bool // an SMB client has marked it for deletion
	readOnly     bool // the attribute
}

// share returns a share, even one that is being deleted. Nil means that the name is free.
func (f *shares) share(s *Service, name string) *shareState {
	sh := f.named[name]
	if sh != nil && !sh.deleted.IsZero() && time.Since(sh.deleted) >= s.o.DeletionDelay {
		delete(f.named, name)
		return nil
	}
	return sh
}

func (f *shares) add(s *Service, name string, metadata map[string]string) *shareState {
	if f.named == nil {
		f.named = map[string]*shareState{}
	}
	sh := &shareState{name: name, etag: s.newETag(), lastModified: now(), metadata: metadata, quota: "5120", files: map[string]*fileState{}, directories: map[string]*directoryState{}}
	f.named[name] = sh
	return sh
}

func isFile(hr *http.Request) bool { return hr.URL.Host == fileHost }

// fileOperation names a request to the File service as the REST reference does.
func fileOperation(method, resource string, q url.Values, h http.Header) string {
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
	case comp == "lease":
		action := h.Get("X-Ms-Lease-Action")
		if action == "" {
			action = "?"
		}
		return strings.ToUpper(action[:1]) + action[1:] + " " + on + " Lease"
	case comp == "range":
		return "Put Range"
	case comp == "metadata":
		return verb(write) + on + " Metadata"
	case comp == "properties":
		return verb(write) + on + " Properties"
	case comp == "list":
		return "List Directories and Files"
	case comp == "listhandles":
		return "List Handles"
	case comp == "forceclosehandles":
		return "Force Close Handles"
	case comp != "":
		return method + " " + comp
	case write:
		return "Create " + on
	case method == http.MethodDelete:
		return "Delete " + on
	case method == http.MethodGet && on == "File":
		return "Get File"
	}
	return "Get " + on + " Properties"
}

func (s *Service) routeFile(r *request) *answer {
	if r.container == "" {
		if r.method == http.MethodGet && r.query.Get("comp") == "list" {
			return s.listShares(r)
		}
		return notImplemented()
	}
	if !containerName.MatchString(r.container) || len(r.container) > 63 || len(r.container) < 3 {
		return fail(http.StatusBadRequest, "InvalidResourceName", "The specified resource name contains invalid characters.")
	}
	if r.query.Get("sharesnapshot") != "" {
		return notImplemented() // without it, the request would be for the share itself
	}
	sh, comp := s.files.share(s, r.container), r.query.Get("comp")
	directory := r.query.Get("restype") == "directory" || comp == "listhandles" || comp == "forceclosehandles"
	if r.blob == "" && !directory {
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

// listShares lists by name, in pages (REST: "List Shares").
func (s *Service) listShares(r *request) *answer {
	var shares []string
	for _, name := range slices.Sorted(maps.Keys(s.files.named)) {
		sh := s.files.share(s, name)
		if sh == nil || !sh.deleted.IsZero() || !strings.HasPrefix(name, r.query.Get("prefix")) {
			continue
		}
		shares = append(shares, fmt.Sprintf("<Share><Name>%s</Name><Properties><Last-Modified>%s</Last-Modified><Etag>%s</Etag><Quota>%s</Quota></Properties></Share>",
			name, stampOf(sh.lastModified), escaped(sh.etag), escaped(sh.quota)))
	}
	page, marker := pageOf(r, shares)
	a := ok(http.StatusOK).set("Content-Type", "application/xml")
	a.body = []byte(xml.Header + "<EnumerationResults><Shares>" + strings.Join(page, "") + "</Shares><NextMarker>" + marker + "</NextMarker></EnumerationResults>")
	return a
}

func noSuchShare() *answer {
	return fail(http.StatusNotFound, "ShareNotFound", "The specified share does not exist.")
}

func shareBeingDeleted() *answer {
	return fail(http.StatusConflict, "ShareBeingDeleted", "The specified share is being deleted. Try operation later.")
}

func (s *Service) routeShare(r *request, sh *shareState) *answer {
	comp := r.query.Get("comp")
	if r.method == http.MethodPut && comp == "" {
		switch {
		case sh != nil && sh.deleted.IsZero():
			return fail(http.StatusConflict, "ShareAlreadyExists", "The specified share already exists.")
		case sh != nil:
			return shareBeingDeleted()
		}
		metadata, a := metadataOf(r)
		if a != nil {
			return a
		}
		sh = s.files.add(s, r.container, metadata)
		sh.quota = cmp.Or(r.header.Get("X-Ms-Share-Quota"), sh.quota)
		return ok(http.StatusCreated).version(sh.etag, sh.lastModified)
	}
	switch {
	case sh == nil, !sh.deleted.IsZero() && r.method == http.MethodGet:
		return noSuchShare()
	case !sh.deleted.IsZero() && r.method == http.MethodDelete:
		return ok(http.StatusAccepted) // it is being deleted
	case !sh.deleted.IsZero():
		return shareBeingDeleted()
	case comp == "lease": // REST: "Lease Share": as for containers
		return sh.lease.operate(r).version(sh.etag, sh.lastModified)
	}
	if a := sh.lease.check(r, "Container", r.method == http.MethodDelete); a != nil {
		return a
	}
	switch {
	case r.method == http.MethodDelete: // leases of its files do not guard it (REST: "Lease File", remarks)
		sh.deleted = time.Now()
		sh.files, sh.directories = map[string]*fileState{}, map[string]*directoryState{}
		return ok(http.StatusAccepted)
	case comp == "" && r.method != http.MethodPut:
		a := ok(http.StatusOK).version(sh.etag, sh.lastModified).describing(sh.metadata).set("x-ms-share-quota", sh.quota).
			set("x-ms-has-immutability-policy", "false").set("x-ms-has-legal-hold", "false")
		sh.lease.describe(a)
		return a
	case comp == "metadata" && r.method != http.MethodPut:
		return ok(http.StatusOK).version(sh.etag, sh.lastModified).describing(sh.metadata)
	case comp == "metadata":
		metadata, a := metadataOf(r)
		if a != nil {
			return a
		}
		sh.metadata = metadata
	case comp == "properties" && r.method == http.MethodPut:
		sh.quota = cmp.Or(r.header.Get("X-Ms-Share-Quota"), sh.quota)
	default:
		return notImplemented()
	}
	sh.etag, sh.lastModified = s.newETag(), now()
	sh.lease.forgetIfOver()
	return ok(http.StatusOK).version(sh.etag, sh.lastModified)
}
