package samba

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
)

// The operations on a file, named as in the REST reference.
const (
	opCreate        = "Create File"
	opGet           = "Get File"
	opSetProperties = "Set File Properties"
	opSetMetadata   = "Set File Metadata"
	opDelete        = "Delete File"
	opPutRange      = "Put Range"
	opListRanges    = "List Ranges"
	opLease         = "Lease File"
	opGetProperties = "Get File Properties"
	opGetMetadata   = "Get File Metadata"
	opHandles       = "List Handles"
	opCloseHandles  = "Force Close Handles"
)

// documented defines how each operation opens the file (REST: "Managing file locks", FileREST file access). Operations
// share everything, because they are short. Three cells are not in that table and follow from others on the page: a
// lease also reads, otherwise a file could be leased whose reading is denied; a lease shares only reading, so that a
// file that is open for writing or deletion cannot be leased; and a deletion shares nothing, because any handle
// prevents it.
func documented() map[string]Open {
	return map[string]Open{
		opCreate:        {Access: AccessWrite | AccessDelete, Share: ShareAll, Disposition: Overwrite, Options: OptionNotDirectory},
		opGet:           {Access: AccessRead, Share: ShareAll},
		opSetProperties: {Access: AccessWrite, Share: ShareAll},
		opSetMetadata:   {Access: AccessWrite, Share: ShareAll},
		opDelete:        {Access: AccessDelete, Share: ShareNone},
		opPutRange:      {Access: AccessWrite, Share: ShareAll},
		opListRanges:    {Access: AccessRead, Share: ShareAll},
		opLease:         {Access: AccessRead | AccessWrite | AccessDelete, Share: ShareRead},
		opGetProperties: {Access: AccessAttributes, Share: ShareAll},
		opGetMetadata:   {Access: AccessAttributes, Share: ShareAll},
		opHandles:       {Access: AccessAttributes, Share: ShareAll},
		opCloseHandles:  {Access: AccessAttributes, Share: ShareAll},
	}
}

// leaseHold is the open that represents a file lease: it admits readers, and excludes writers and deletions.
var leaseHold = Open{Access: AccessRead, Share: ShareRead}

// Bridge implements the part of FileREST that azfile needs for files. For each call it opens the file as the service's
// documentation says, and translates Samba's answer to the service's. It is a transport for SDK clients and an
// http.Handler, and handles one request at a time. testdata/limits.md lists what it cannot show.
type Bridge struct {
	server *Server
	opens  map[string]Open
	hold   Open // the open that represents a lease

	// countsHandles makes a deletion check for other handles of the file. That requires root; tests turn it off to
	// leave the decision to Samba.
	countsHandles bool

	mu     sync.Mutex // guards the fields below, and serializes requests
	client *Client
	leases map[string]*fileLease
	notes  map[string]map[string]string // each file's metadata, which SMB does not have
	writes map[string]int               // the number of writes to each file, for its ETag
}

// NewBridge connects a bridge to a server until the test ends.
func NewBridge(tb testing.TB, s *Server) *Bridge {
	tb.Helper()
	c, err := s.Dial(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return &Bridge{server: s, opens: documented(), hold: leaseHold, countsHandles: s.blind == nil, client: c, leases: map[string]*fileLease{},
		notes: map[string]map[string]string{}, writes: map[string]int{}}
}

// bridgeURL is aztest's URL of its File service, by which its faults recognize operations. Nothing listens there.
const bridgeURL = "http://127.0.0.1:10004/devstoreaccount1/"

// ClientOptions returns options for SDK clients of the bridge, without the SDK's retries.
func (b *Bridge) ClientOptions() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: b, Retry: policy.RetryOptions{MaxRetries: -1}}
}

// Share returns a client for the share.
func (b *Bridge) Share() *share.Client {
	c, err := share.NewClientWithNoCredential(bridgeURL+ShareName, &share.ClientOptions{ClientOptions: b.ClientOptions()})
	if err != nil {
		panic(err) // the constant is wrong
	}
	return c
}

// File returns a client for a file in the root of the share, which need not exist.
func (b *Bridge) File(name string) *file.Client {
	return b.Share().NewRootDirectoryClient().NewFileClient(name)
}

// Do is the transport of SDK clients.
func (b *Bridge) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	in.Header = http.Header{} // the SDK does not write all of them in the canonical form
	for name, values := range r.Header {
		in.Header[http.CanonicalHeaderKey(name)] = values
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, in)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// refusal is an error response.
type refusal struct {
	status        int
	code, message string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %s", r.status, r.code) }

func refused(status int, code, message string) error { return &refusal{status, code, message} }

var (
	errNotFound        = refused(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
	errNotImplemented  = refused(http.StatusNotImplemented, "NotImplemented", "The bridge does not know this operation.")
	errInvalidHeader   = refused(http.StatusBadRequest, "InvalidHeaderValue", "The value of a header is invalid.")
	errInvalidRange    = refused(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The range specified is invalid for the current size of the resource.")
	errSharing         = refused(http.StatusConflict, "SharingViolation", "The specified resource may be in use by an SMB client.")
	errReadOnly        = refused(http.StatusPreconditionFailed, "ReadOnlyAttribute", "The specified resource is read-only and cannot be modified at this time.")
	errCannotDelete    = refused(http.StatusConflict, "ReadOnlyAttribute", "The specified resource is read-only and cannot be modified at this time.")
	errShareNotFound   = refused(http.StatusNotFound, "ShareNotFound", "The specified share does not exist.")
	errParentNotFound  = refused(http.StatusNotFound, "ParentNotFound", "The specified parent path does not exist.")
	errDeletePending   = refused(http.StatusConflict, "SMBDeletePending", "The specified resource is marked for deletion by an SMB client.")
	errFileLock        = refused(http.StatusConflict, "FileLockConflict", "A portion of the specified file is locked by an SMB client.")
	errAuthorization   = refused(http.StatusForbidden, "AuthorizationPermissionMismatch", "Access is denied.")
	errAlreadyExisting = refused(http.StatusConflict, "ResourceAlreadyExists", "The specified resource already exists.")
)

// inAzuresWords is the only place that translates SMB's answers to the service's (REST: "Managing file locks", "Azure
// Files error codes"). For a pending deletion the first page has SMBDeletePending and the second DeletePending. For the
// read-only attribute the first has 412, for writes, and the second 409, which therefore applies to deletions.
func inAzuresWords(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	for status, answer := range map[Status]error{
		StatusSharingViolation: errSharing,
		StatusDeletePending:    errDeletePending,
		StatusFileLockConflict: errFileLock,
		StatusLockNotGranted:   errFileLock,
		StatusNameNotFound:     errNotFound,
		StatusPathNotFound:     errParentNotFound,
		StatusNameCollision:    errAlreadyExisting,
		StatusCannotDelete:     errCannotDelete,
		StatusAccessDenied:     errAuthorization,
	} {
		if errors.Is(err, status) {
			return answer.(*refusal) //nolint:errorlint // made above
		}
	}
	return &refusal{http.StatusInternalServerError, "InternalError", err.Error()}
}

// ServeHTTP serves /share/path, also after the account's name, as in an emulator. It ignores signatures.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	w.Header().Set("x-ms-version", r.Header.Get("x-ms-version"))
	err := b.route(w, r)
	if err == nil {
		return
	}
	answer := inAzuresWords(err)
	w.Header().Set("x-ms-error-code", answer.code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(answer.status)
	_ = xml.NewEncoder(w).Encode(struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: answer.code, Message: answer.message})
}

// request is a parsed request for an operation on a file.
type request struct {
	*http.Request
	op   string
	path string
	in   http.Header // the request's, and
	out  http.Header // of the response, until its first byte is written
}

func (b *Bridge) route(w http.ResponseWriter, r *http.Request) error {
	path := strings.TrimPrefix(strings.Trim(r.URL.Path, "/"), "devstoreaccount1/")
	name, path, _ := strings.Cut(path, "/")
	q := r.URL.Query()
	if name != ShareName {
		return errShareNotFound
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.Get("restype") == "directory" && q.Get("comp") == "list" {
		return b.list(w, path)
	}
	if path == "" || q.Get("restype") != "" {
		return errNotImplemented // the share and its directories come from Samba's configuration
	}
	in := &request{Request: r, op: operation(r.Method, q.Get("comp")), path: path, in: r.Header, out: w.Header()}
	if in.op == "" {
		return errNotImplemented
	}
	return b.serve(w, in)
}

func operation(method, comp string) string {
	return map[string]string{
		"PUT ":                  opCreate,
		"GET ":                  opGet,
		"HEAD ":                 opGetProperties,
		"DELETE ":               opDelete,
		"PUT properties":        opSetProperties,
		"PUT metadata":          opSetMetadata,
		"GET metadata":          opGetMetadata,
		"HEAD metadata":         opGetMetadata,
		"PUT range":             opPutRange,
		"GET rangelist":         opListRanges,
		"PUT lease":             opLease,
		"GET listhandles":       opHandles,
		"PUT forceclosehandles": opCloseHandles,
	}[method+" "+comp]
}

func (r *request) integer(header string) (int64, error) {
	n, err := strconv.ParseInt(r.in.Get(header), 10, 64)
	if err != nil || n < 0 {
		return 0, errInvalidHeader
	}
	return n, nil
}

// background outlives the request: an operation that has begun is completed.
func (r *request) background() context.Context { return context.WithoutCancel(r.Context()) }
