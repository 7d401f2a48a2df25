package aztest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// Account and Key are those of every Service: the emulators' well-known ones, which protect nothing.
const (
	Account = "devstoreaccount1"
	Key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Options tunes a Service. The zero value is the default.
type Options struct {
	// Seed selects the requests that meet a fault with a Probability. Defaults to 0.
	Seed uint64

	// Latency returns the duration of a request; half of it passes before the request is applied and half after. It
	// must be safe for concurrent use. Defaults to none.
	Latency func() time.Duration

	// DeletionDelay is how long the name of a deleted container remains taken (409 ContainerBeingDeleted). Negative
	// means not at all, as with an emulator. Defaults to 30 s, as the service documents.
	DeletionDelay time.Duration

	// DateLag is the most by which the clock of the Date header is behind the one that stamps writes. How far it is behind
	// is drawn from the seed for each response, so that Date goes back by a second now and then; it is never ahead. With
	// a second, as the recorded accounts had, Date is up to 1.99 s behind the Last-Modified of the same response. Defaults
	// to none.
	DateLag time.Duration

	// SharedPageETags is the time within which unconditional Put Pages of one blob, on other ranges each, may get one ETag,
	// as recorded accounts gave to parallel ones. Whether they do is drawn from the seed. Defaults to none: every write gets
	// an ETag of its own.
	SharedPageETags time.Duration

	// Anonymous accepts requests without a credential, as if everything were public, even for writing. Defaults to
	// refusing them with 401. To refuse every request, set a fault: Answer with Status 403.
	Anonymous bool

	_ struct{}
}

// Service is an account of Azure Storage in memory.
type Service struct {
	o        Options
	injector *Injector

	mu         sync.Mutex // guards what follows; held for map work only, never while waiting
	containers map[string]*containerState
	tables     tables
	queues     queues
	files      shares
	etags      uint64
	requests   uint64
	copies     uint64
	snapped    time.Time // the last snapshot's
	rng        *rand.Rand
	copiesPend bool
	properties []byte // of the Blob service, as they were set
}

// New returns an empty account.
func New(opts *Options) *Service {
	s := &Service{containers: map[string]*containerState{}}
	if opts != nil {
		s.o = *opts
	}
	s.rng = rand.New(rand.NewPCG(s.o.Seed, 2)) // not the injector's: the faults stay the same
	if s.o.DeletionDelay == 0 {
		s.o.DeletionDelay = 30 * time.Second
	}
	s.injector = Inject(transport(s.carry), s.o.Seed)
	s.injector.latency = s.o.Latency
	return s
}

// transport turns a function into a policy.Transporter.
type transport func(*http.Request) (*http.Response, error)

func (t transport) Do(r *http.Request) (*http.Response, error) { return t(r) }

// Do implements policy.Transporter.
func (s *Service) Do(r *http.Request) (*http.Response, error) { return s.injector.Do(r) }

// SetFaults replaces the faults and resets their counts. It does not reset the random numbers.
func (s *Service) SetFaults(faults ...Fault) { s.injector.SetFaults(faults...) }

// Flush applies every request that a DelayCommit fault holds back, due or not.
func (s *Service) Flush() { s.injector.Flush() }

// Requests returns the number of requests that were sent since the start or the last Reset, including those that
// failed.
func (s *Service) Requests() int { return s.injector.Requests() }

// Log returns those requests in the order in which they were sent.
func (s *Service) Log() []Request { return s.injector.Log() }

// Reset empties the log.
func (s *Service) Reset() { s.injector.Reset() }

// The URLs are those of an emulator on this machine, but nothing listens there: requests go to Do.
const blobHost = "127.0.0.1:10000"

// BlobURL is the Blob service's URL for clients whose transport is the Service.
func (s *Service) BlobURL() string { return "http://" + blobHost + "/" + Account }

// ClientOptions returns options for any SDK client that is to use the Service.
func (s *Service) ClientOptions() azcore.ClientOptions { return policy.ClientOptions{Transport: s} }

// Container returns a client for a container, which need not exist.
func (s *Service) Container(name string) *container.Client {
	credential, err := container.NewSharedKeyCredential(Account, Key)
	if err != nil {
		panic(err) // the constants above are wrong
	}
	client, err := container.NewClientWithSharedKeyCredential(s.BlobURL()+"/"+name, credential, &container.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		panic(err)
	}
	return client
}

// BlockBlob returns a client for a blob, and creates the container if it is missing, without a request.
func (s *Service) BlockBlob(containerName, blobName string) *blockblob.Client {
	s.mu.Lock()
	if s.containers[containerName] == nil {
		s.containers[containerName] = s.newContainer(containerName)
	}
	s.mu.Unlock()
	return s.Container(containerName).NewBlockBlobClient(blobName)
}

// ConnectionString returns a connection string for programs that reach the Service through a server with BlobHandler at
// blobURL, which ends in the account's name.
func ConnectionString(blobURL string) string {
	return fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;", Account, Key, blobURL)
}

// BlobHandler serves the Blob service over HTTP, at /devstoreaccount1. A lost response closes the connection.
func (s *Service) BlobHandler() http.Handler { return s.injector.handler(blobHost) }

// carry is the service itself: it applies one request, at once.
func (s *Service) carry(hr *http.Request) (*http.Response, error) {
	r, err := parseRequest(hr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	return s.route(r).stamped(fmt.Sprintf("aztest-%08d", s.requests), r.header, s.date()).response(hr), nil
}

// stamped adds the headers that every response of the service has, even an error.
func (a *answer) stamped(id string, request http.Header, date time.Time) *answer {
	return a.set("x-ms-request-id", id).set("x-ms-version", request.Get("x-ms-version")).
		set("x-ms-client-request-id", request.Get("x-ms-client-request-id")).
		set("Date", date.UTC().Format(http.TimeFormat)).set("Server", "aztest")
}

// date returns the time of the clock of the Date header.
func (s *Service) date() time.Time {
	if s.o.DateLag <= 0 {
		return time.Now()
	}
	return time.Now().Add(-time.Duration(s.rng.Int64N(int64(s.o.DateLag))))
}

func (s *Service) route(r *request) *answer {
	if r.account != Account {
		return fail(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
	}
	if !s.o.Anonymous && r.header.Get("Authorization") == "" && r.query.Get("sig") == "" {
		return fail(http.StatusUnauthorized, "NoAuthenticationInformation", "Server failed to authenticate the request.")
	}
	switch r.host {
	case tableHost:
		return s.routeTable(r).preferring(r)
	case queueHost:
		return s.routeQueue(r)
	case fileHost:
		return s.routeFile(r)
	}
	return s.routeBlob(r)
}

// newETag returns a new ETag, in the form that the Blob service uses.
func (s *Service) newETag() string {
	s.etags++
	return `"0x8DE` + fmt.Sprintf("%012X", s.etags*2654435761%(1<<48)) + `"`
}

// now returns the time of the service's clock, in whole seconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// answer is the service's response to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
	size   int64  // Content-Length if it is not the body's: for HEAD
	code   string // the error code if it is only in the body, for the log
}

func ok(status int) *answer { return &answer{status: status, header: http.Header{}, size: -1} }

// fail returns an error response, with the code in the header, for HEAD, and in the body.
func fail(status int, code, message string) *answer {
	a := ok(status)
	a.header.Set("x-ms-error-code", code)
	if status == http.StatusNotModified {
		return a
	}
	a.header.Set("Content-Type", "application/xml")
	a.body = fmt.Appendf(nil, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
	return a
}

func (a *answer) set(name, value string) *answer {
	if value != "" {
		a.header.Set(name, value)
	}
	return a
}

func (a *answer) failed() bool { return a.status >= 300 }

// codedBody is a body with its error code, for the log: the Table service puts the code nowhere else.
type codedBody struct {
	io.Reader
	code string
}

func (codedBody) Close() error { return nil }

func (a *answer) response(r *http.Request) *http.Response {
	size := a.size
	if size < 0 {
		size = int64(len(a.body))
	}
	body := a.body
	if r.Method == http.MethodHead {
		body = nil
	}
	a.header.Set("Content-Length", strconv.FormatInt(size, 10))
	return &http.Response{
		StatusCode: a.status, Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: codedBody{newReader(body), a.code}, ContentLength: size, Request: r,
	}
}
