package aztest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/auth"
	"github.com/azconc/azconc/pkg/aztest/internal/blobservice"
	"github.com/azconc/azconc/pkg/aztest/internal/fileservice"
	"github.com/azconc/azconc/pkg/aztest/internal/queueservice"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
	"github.com/azconc/azconc/pkg/aztest/internal/tableservice"
	"github.com/azconc/azconc/pkg/ptr"
)

// Account and Key are those of a Service by default: the emulators' well-known ones, which protect nothing.
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

	// Anonymous accepts requests without a credential, as if everything were public, even for writing. Defaults to
	// refusing them with 401. To refuse every request, set a fault: Answer with Status 403.
	Anonymous bool

	// Account is the account's name, and Key its key in base64. They default to the constants Account and Key.
	Account, Key string

	// VerifySignatures refuses a request whose shared key signature or SAS is wrong, expired or not sufficient, with the
	// service's errors, and permits reads of public containers without a credential. Defaults to requiring a credential and
	// not looking at it.
	VerifySignatures bool

	// WithoutLog keeps no log, for a Service that runs for long: Requests and Log return nothing. Defaults to a log, which
	// grows with every request.
	WithoutLog bool

	_ struct{}
}

// Service is an account of Azure Storage in memory. Its Injector has the faults and the log.
type Service struct {
	*Injector // in front of the service itself, which is carry

	o         Options
	authority *auth.Authority

	mu       sync.Mutex // guards what follows; held for map work only, never while waiting
	services map[string]part
	blobs    *blobservice.Service // one of services, as files is
	files    *fileservice.Service
	account  *storage.Account
	requests uint64
	lags     *rand.Rand // of Date; its numbers are not those of the faults
}

// part is one of the services of an account.
type part interface {
	Route(*storage.Request) *storage.Answer
	Ensure(name string)
	Policies(name string) []byte
}

// ensure creates a container, queue, share or table if it is missing.
func (s *Service) ensure(service, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services[service].Ensure(name)
}

// New returns an empty account. It panics if Key is not base64.
func New(opts *Options) *Service {
	s := &Service{o: ptr.Value(opts)}
	if s.o.DeletionDelay == 0 {
		s.o.DeletionDelay = 30 * time.Second
	}
	s.o.Account, s.o.Key = cmp.Or(s.o.Account, Account), cmp.Or(s.o.Key, Key)
	var err error
	if s.authority, err = auth.New(s.o.Account, s.o.Key); err != nil {
		panic("aztest: " + err.Error())
	}
	s.lags = rand.New(rand.NewPCG(s.o.Seed, 2))
	s.account = &storage.Account{Name: s.o.Account, Deletion: s.o.DeletionDelay, Anonymous: s.o.Anonymous}
	s.blobs, s.files = blobservice.New(s.account), fileservice.New(s.account)
	s.services = map[string]part{
		storage.Blob: s.blobs, storage.File: s.files, storage.Table: tableservice.New(s.account), storage.Queue: queueservice.New(s.account),
	}
	s.Injector = Inject(transport(s.carry), s.o.Seed)
	s.silent, s.latency = s.o.WithoutLog, s.o.Latency
	s.Injector.date = func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.date()
	}
	return s
}

// transport turns a function into a policy.Transporter.
type transport func(*http.Request) (*http.Response, error)

func (t transport) Do(r *http.Request) (*http.Response, error) { return t(r) }

// ConnectionString returns a connection string for programs that reach the Service through a server with BlobHandler at
// blobURL, which ends in the account's name.
func ConnectionString(blobURL string) string {
	return fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;", Account, Key, blobURL)
}

// carry is the service itself: it applies one request, at once.
func (s *Service) carry(hr *http.Request) (*http.Response, error) {
	r, err := storage.ParseRequest(hr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.account.Endpoint = "http://" + cmp.Or(hr.Host, r.Host) + "/" + s.o.Account
	return s.answer(hr, r).Stamped(fmt.Sprintf("aztest-%08d", s.requests), r.Header, s.date()).Response(hr), nil
}

// date returns the time of the clock of the Date header. It is called with mu held.
func (s *Service) date() time.Time {
	if s.o.DateLag <= 0 {
		return time.Now()
	}
	return time.Now().Add(-time.Duration(s.lags.Int64N(int64(s.o.DateLag))))
}
