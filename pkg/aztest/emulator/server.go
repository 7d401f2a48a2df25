// Package emulator serves aztest's accounts on loopback, for programs in any language:
//
//	server, err := emulator.Start(ctx, nil)
//	defer server.Stop()
//	client, err := azblob.NewClientFromConnectionString(server.ConnectionString(), nil)
//
// It has the four services: blobs, queues, tables and files. Signatures and SAS are verified with the service's errors.
// Everything is in memory, without a limit but that of 1 GiB for a request, and is gone when the server stops.
package emulator

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
	"github.com/azconc/azconc/pkg/ptr"
)

// Options are the options of [Start].
type Options struct {
	// Accounts are the names of the accounts, 3 to 24 lower-case letters and digits each. aztest.Account gets its
	// well-known key, every other account a key of its own. Defaults to aztest.Account alone.
	Accounts []string
	// BlobPort, QueuePort, TablePort and FilePort are TCP ports on 127.0.0.1. UseDevelopmentStorage=true means 10000,
	// 10001 and 10002 for the first three. Each defaults to one that is free.
	BlobPort, QueuePort, TablePort, FilePort int
	// Faults are what goes wrong. ParseFaults reads them from a text. Defaults to nothing.
	Faults []aztest.Fault
	// Seed selects the requests that meet a fault. Defaults to 0.
	Seed uint64
	// Log gets a line when the server itself fails at a request. Defaults to none.
	Log io.Writer

	_ struct{}
}

// accountName is the form of the names that the service gives to accounts.
var accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)

func (o Options) validate() error {
	for i, name := range o.Accounts {
		if !accountName.MatchString(name) {
			return fmt.Errorf("Accounts[%d]: %q is not 3 to 24 lower-case letters and digits", i, name)
		}
		if slices.Contains(o.Accounts[:i], name) {
			return fmt.Errorf("Accounts[%d]: %q is there twice", i, name)
		}
	}
	return nil
}

// Server is a running emulator. It is safe for concurrent use.
type Server struct {
	accounts []Account
	services map[string]*aztest.Service // by account
	servers  []*http.Server
	cancel   context.CancelFunc // of the requests that are being served
	serving  sync.WaitGroup
	stop     sync.Once
	done     chan struct{} // closed by Stop, when nothing is served any more
}

// services are those of an account, in the order of their ports.
var services = []struct {
	name    string
	handler func(*aztest.Service) http.Handler
	url     func(*Account) *string
}{
	{"Blob", (*aztest.Service).BlobHandler, func(a *Account) *string { return &a.BlobURL }},
	{"Queue", (*aztest.Service).QueueHandler, func(a *Account) *string { return &a.QueueURL }},
	{"Table", (*aztest.Service).TableHandler, func(a *Account) *string { return &a.TableURL }},
	{"File", (*aztest.Service).FileHandler, func(a *Account) *string { return &a.FileURL }},
}

// Start starts a server with empty accounts. ctx bounds the start, not the life of the server.
//
// Errors are those of the options, and of listening: a port is in use. A failed start leaves nothing behind.
func Start(ctx context.Context, opts *Options) (*Server, error) {
	o := ptr.Value(opts)
	if len(o.Accounts) == 0 {
		o.Accounts = []string{aztest.Account}
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	serving, cancel := context.WithCancel(context.Background())
	s := &Server{services: map[string]*aztest.Service{}, cancel: cancel, done: make(chan struct{})}
	for i, name := range o.Accounts {
		a := Account{Name: name, Key: aztest.Key}
		if name != aztest.Account {
			key := make([]byte, 64)
			rand.Read(key)
			a.Key = base64.StdEncoding.EncodeToString(key)
		}
		service := aztest.New(&aztest.Options{Account: name, Key: a.Key, Seed: o.Seed + uint64(i), DeletionDelay: -1, VerifySignatures: true, WithoutLog: true})
		service.SetFaults(o.Faults...)
		s.accounts, s.services[name] = append(s.accounts, a), service
	}
	for i, port := range []int{o.BlobPort, o.QueuePort, o.TablePort, o.FilePort} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			_ = s.Stop()
			return nil, fmt.Errorf("the %s service: %w", services[i].name, err)
		}
		handlers := byAccount{}
		for j := range s.accounts {
			a := &s.accounts[j]
			*services[i].url(a) = "http://" + listener.Addr().String() + "/" + a.Name
			handlers[a.Name] = services[i].handler(s.services[a.Name])
		}
		server := &http.Server{
			Handler: handlers, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(cmp.Or(o.Log, io.Discard), "", 0),
			BaseContext: func(net.Listener) context.Context { return serving },
		}
		s.servers = append(s.servers, server)
		s.serving.Go(func() { _ = server.Serve(listener) }) // ends with ErrServerClosed
	}
	return s, nil
}

// maxBody is the largest body of a request. The service takes 5,000 MiB, which would have to fit into memory.
const maxBody = 1 << 30

// byAccount passes a request on to the account in its path.
type byAccount map[string]http.Handler

func (b byAccount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	handler := b[name]
	switch {
	case handler == nil:
		refuse(w, storage.Fail(http.StatusBadRequest, "InvalidUri",
			"The URL does not begin with the name of an account of this emulator: /"+aztest.Account+" is one by default."))
	case r.ContentLength > maxBody:
		refuse(w, storage.TooLarge())
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		handler.ServeHTTP(w, r)
	}
}

// refuse refuses a request before it reaches an account.
func refuse(w http.ResponseWriter, a *storage.Answer) {
	maps.Copy(w.Header(), a.Set("Server", "aztest").Header)
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

// ConnectionString returns the connection string of the first account, with its key.
func (s *Server) ConnectionString() string { return s.accounts[0].ConnectionString() }

// Account returns the first account.
func (s *Server) Account() Account { return s.accounts[0] }

// Accounts returns all accounts, in the order of Options.Accounts.
func (s *Server) Accounts() []Account { return slices.Clone(s.accounts) }

// Done returns a channel that is closed when the server has stopped.
func (s *Server) Done() <-chan struct{} { return s.done }

// grace is how long Stop waits for requests whose response is being sent.
const grace = 2 * time.Second

// Stop ends the server: it accepts no connection from now on, ends requests that a fault holds back, lets others finish
// within 2 s, and drops those that do not, and all data. It may be called any number of times; each call returns when nothing is served
// any more. The error is always nil.
func (s *Server) Stop() error {
	s.stop.Do(func() {
		s.cancel() // ends what a fault holds back; other requests do not look at it
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		var closing sync.WaitGroup
		for _, server := range s.servers {
			closing.Go(func() {
				if errors.Is(server.Shutdown(ctx), context.DeadlineExceeded) {
					_ = server.Close()
				}
			})
		}
		closing.Wait()
		s.serving.Wait()
		close(s.done)
	})
	<-s.done
	return nil
}

// Account is one of the accounts of a [Server]. Accounts share no data.
type Account struct {
	// Name and Key are the account's shared key credential.
	Name, Key string
	// BlobURL, QueueURL, TableURL and FileURL are the endpoints, "http://127.0.0.1:<port>/<account>".
	BlobURL, QueueURL, TableURL, FileURL string
}

// ConnectionString returns the account's connection string, with the key, for the SDKs and for azconc.
func (a Account) ConnectionString() string {
	text := fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;QueueEndpoint=%s;TableEndpoint=%s;",
		a.Name, a.Key, a.BlobURL, a.QueueURL, a.TableURL)
	if a.FileURL != "" { // Azurite has none
		text += "FileEndpoint=" + a.FileURL + ";"
	}
	return text
}
