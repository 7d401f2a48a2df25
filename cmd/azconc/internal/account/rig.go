package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	files "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/conformance"
)

// namePrefix begins the name of everything that is created. Table names have no hyphens.
const namePrefix = "azconc-conformance-"

// rig is the account, with two sets of clients: those of the suite, and those of the scenarios, which can lose
// responses. All requests of both are counted, and refused after an interrupt.
type rig struct {
	ctx      context.Context
	account  *azaccount.Account
	emulator bool
	prefix   string // namePrefix, and an id of this run

	transport *http.Transport
	requests  atomic.Int64
	plain     clients
	lossy     clients
	faults    *aztest.Injector // in front of the transport of lossy

	mu      sync.Mutex
	serial  int
	created []resource // guarded by mu
}

// clients are those of one transport. A client is nil if the account does not have the service.
type clients struct {
	blobs  *blobs.Client
	tables *aztables.ServiceClient
	queues *azqueue.ServiceClient
	files  *files.Client
}

func newRig(ctx context.Context, account *azaccount.Account, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*rig, error) {
	r := &rig{ctx: ctx, account: account, emulator: account.Emulator(azaccount.Blob)}
	r.prefix = namePrefix + strings.ToLower(rand.Text()[:8]) + "-"
	r.transport = http.DefaultTransport.(*http.Transport).Clone()
	r.transport.ResponseHeaderTimeout = 90 * time.Second
	r.transport.MaxIdleConnsPerHost = 32
	if dial != nil {
		r.transport.DialContext = dial
	}
	var err error
	if r.plain, err = r.clients(transport(r.send)); err != nil {
		return nil, err
	}
	r.faults = aztest.Inject(transport(r.send), 1)
	r.lossy, err = r.clients(r.faults)
	return r, err
}

func (r *rig) close() { r.transport.CloseIdleConnections() }

type transport func(*http.Request) (*http.Response, error)

func (t transport) Do(hr *http.Request) (*http.Response, error) { return t(hr) }

type removing struct{}

// errStopped is the error of a request after an interrupt. The SDK does not retry it.
type errStopped struct{}

func (errStopped) Error() string { return "the run was interrupted" }
func (errStopped) NonRetriable() {}

// send counts a request and sends it, unless the run was interrupted. Requests that remove resources are always sent.
func (r *rig) send(hr *http.Request) (*http.Response, error) {
	if r.ctx.Err() != nil && hr.Context().Value(removing{}) == nil {
		return nil, errStopped{}
	}
	r.requests.Add(1)
	client := http.Client{Transport: r.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return client.Do(hr)
}

func (r *rig) clients(over policy.Transporter) (c clients, err error) {
	options := func() policy.ClientOptions {
		return policy.ClientOptions{Transport: over, PerCallPolicies: []policy.Policy{conformance.Requests()}}
	}
	if c.blobs, err = r.account.BlobService(&blobs.ClientOptions{ClientOptions: options()}); err != nil {
		return c, err
	}
	if r.has("table") {
		if c.tables, err = r.account.TableService(&aztables.ClientOptions{ClientOptions: options()}); err != nil {
			return c, err
		}
	}
	if r.has("queue") {
		o := &azqueue.ClientOptions{ClientOptions: options()}
		o.PerRetryPolicies = append(o.PerRetryPolicies, idempotent.Policy())
		if c.queues, err = r.account.QueueService(o); err != nil {
			return c, err
		}
	}
	if r.has("file") {
		c.files, err = r.account.FileService(&files.ClientOptions{ClientOptions: options()})
	}
	return c, err
}

// has reports whether the account has a service, such as "file". A connection string with an emulator's endpoints and a
// name implies the real account of that name for the services that the emulator does not have; that account is not
// used.
func (r *rig) has(service string) bool {
	s := azaccount.Service(service)
	return r.account.Endpoint(s) != "" && r.account.Emulator(s) == r.emulator
}

// name returns a new name, and records that the resource has to be removed.
func (r *rig) name(service string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serial++
	name := fmt.Sprintf("%s%d", r.prefix, r.serial)
	if service == "table" {
		name = strings.ReplaceAll(name, "-", "")
	}
	r.created = append(r.created, resource{service, name})
	return name
}

func (r *rig) container(t conformance.T, c clients) *container.Client {
	t.Helper()
	client := c.blobs.NewContainerClient(r.name("blob"))
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatalf("create a container: %v", err)
	}
	return client
}

func (r *rig) table(t conformance.T, c clients) *aztables.Client {
	t.Helper()
	client := c.tables.NewClient(r.name("table"))
	if _, err := client.CreateTable(t.Context(), nil); err != nil {
		t.Fatalf("create a table: %v", err)
	}
	return client
}

func (r *rig) queue(t conformance.T, c clients) *azqueue.QueueClient {
	t.Helper()
	client := c.queues.NewQueueClient(r.name("queue"))
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatalf("create a queue: %v", err)
	}
	return client
}

func (r *rig) share(t conformance.T, c clients) *share.Client {
	t.Helper()
	client := c.files.NewShareClient(r.name("file"))
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatalf("create a share: %v", err)
	}
	return client
}

// harness returns the account for the suite.
func (r *rig) harness() conformance.Harness {
	return conformance.Harness{
		Emulator:  r.emulator,
		Container: func(t conformance.T) *container.Client { return r.container(t, r.plain) },
		Sign:      r.sign,
		Queue:     func(t conformance.T) *azqueue.QueueClient { return r.queue(t, r.plain) },
		Share:     func(t conformance.T) *share.Client { return r.share(t, r.plain) },
		Tables: func(t conformance.T) (*aztables.ServiceClient, string) {
			t.Helper()
			name := r.name("table")
			if _, err := r.plain.tables.CreateTable(t.Context(), name, nil); err != nil {
				t.Fatalf("create a table: %v", err)
			}
			return r.plain.tables, name
		},
	}
}

// sign returns a URL with which anybody can read a blob, signed with the account's credential.
func (r *rig) sign(t conformance.T, b *blockblob.Client) string {
	t.Helper()
	read := sas.BlobPermissions{Read: true}
	expiry := time.Now().UTC().Add(time.Hour)
	switch r.account.Credential() {
	case "SAS":
		return b.URL()
	case "key":
		signed, err := b.GetSASURL(read, expiry, nil)
		if err != nil {
			t.Fatalf("sign a URL: %v", err)
		}
		return signed
	}
	start := time.Now().UTC().Add(-time.Minute)
	key, err := r.plain.blobs.GetUserDelegationCredential(t.Context(), blobs.KeyInfo{
		Start: new(start.Format(sas.TimeFormat)), Expiry: new(expiry.Format(sas.TimeFormat)),
	}, nil)
	if err != nil {
		t.Fatalf("ask for a key to sign with (the role Storage Blob Data Contributor allows it): %v", err)
	}
	parts, err := blob.ParseURL(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	parts.SAS, err = sas.BlobSignatureValues{
		ContainerName: parts.ContainerName, BlobName: parts.BlobName, Permissions: read.String(), StartTime: start, ExpiryTime: expiry,
	}.SignWithUserDelegation(key)
	if err != nil {
		t.Fatal(err)
	}
	return parts.String()
}
