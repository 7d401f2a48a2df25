package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
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
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	filelease "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
	files "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/pkg/aztest/conformance"
)

// namePrefix begins the name of everything that is created. Table names have no hyphens.
const namePrefix = "azconc-conformance-"

// rig is the account, with its clients. Those of a service that it does not have are nil.
type rig struct {
	ctx      context.Context
	account  *azaccount.Account
	emulator bool
	stderr   io.Writer
	hide     func(string) string
	prefix   string // namePrefix, and an id of this run

	transport *http.Transport
	requests  atomic.Int64
	names     atomic.Int64

	mu      sync.Mutex
	created []resource // guarded by mu

	blobs  *blobs.Client
	tables *aztables.ServiceClient
	queues *azqueue.ServiceClient
	files  *files.Client
}

// connect makes the clients. All send their requests by r.Do, which counts them.
func (r *rig) connect(over *http.Transport) (err error) {
	r.prefix = namePrefix + strings.ToLower(rand.Text()[:8]) + "-"
	r.transport = over
	r.transport.ResponseHeaderTimeout = 90 * time.Second
	r.transport.MaxIdleConnsPerHost = 32
	options := policy.ClientOptions{Transport: r, PerCallPolicies: []policy.Policy{conformance.Requests()}}
	if r.blobs, err = r.account.BlobService(&blobs.ClientOptions{ClientOptions: options}); err != nil {
		return err
	}
	if r.has("table") {
		if r.tables, err = r.account.TableService(&aztables.ClientOptions{ClientOptions: options}); err != nil {
			return err
		}
	}
	if r.has("queue") {
		if r.queues, err = r.account.QueueService(&azqueue.ClientOptions{ClientOptions: options}); err != nil {
			return err
		}
	}
	if r.has("file") {
		r.files, err = r.account.FileService(&files.ClientOptions{ClientOptions: options})
	}
	return err
}

// Do implements policy.Transporter.
func (r *rig) Do(hr *http.Request) (*http.Response, error) {
	r.requests.Add(1)
	client := http.Client{Transport: r.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return client.Do(hr)
}

// has reports whether the account has a service, such as "file". A connection string with an emulator's endpoints and a
// name implies the real account of that name for the services that the emulator does not have; that account is not
// used.
func (r *rig) has(service string) bool {
	s := azaccount.Service(service)
	return r.account.Endpoint(s) != "" && r.account.Emulator(s) == r.emulator
}

// name returns a new name.
func (r *rig) name() string { return fmt.Sprint(r.prefix, r.names.Add(1)) }

// create creates a resource, and notes it for the removal.
func (r *rig) create(t conformance.T, x resource, create func() error) {
	t.Helper()
	r.mu.Lock()
	r.created = append(r.created, x)
	r.mu.Unlock()
	if err := create(); err != nil {
		t.Fatalf("create what the section needs: %v", err)
	}
}

// harness returns the account for the suite.
func (r *rig) harness() conformance.Harness {
	return conformance.Harness{
		Emulator: r.emulator,
		Sign:     r.sign,
		Container: func(t conformance.T) *container.Client {
			name := r.name()
			c := r.blobs.NewContainerClient(name)
			r.create(t, resource{
				"container", name,
				func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err },
				func(ctx context.Context) error {
					holder, err := lease.NewContainerClient(c, nil)
					if err == nil {
						_, err = holder.BreakLease(ctx, &lease.ContainerBreakOptions{BreakPeriod: new(int32(0))})
					}
					return err
				},
			}, func() error { _, err := c.Create(t.Context(), nil); return err })
			return c
		},
		Queue: func(t conformance.T) *azqueue.QueueClient {
			name := r.name()
			c := r.queues.NewQueueClient(name)
			r.create(t, resource{"queue", name, func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }, nil},
				func() error { _, err := c.Create(t.Context(), nil); return err })
			return c
		},
		Share: func(t conformance.T) *share.Client {
			name := r.name()
			c := r.files.NewShareClient(name)
			all := &share.DeleteOptions{DeleteSnapshots: new(share.DeleteSnapshotsOptionTypeInclude)}
			r.create(t, resource{
				"share", name,
				func(ctx context.Context) error { _, err := c.Delete(ctx, all); return err },
				func(ctx context.Context) error {
					holder, err := filelease.NewShareClient(c, nil)
					if err == nil {
						_, err = holder.Break(ctx, &filelease.ShareBreakOptions{BreakPeriod: new(int32(0))})
					}
					return err
				},
			}, func() error { _, err := c.Create(t.Context(), nil); return err })
			return c
		},
		Tables: func(t conformance.T) (*aztables.ServiceClient, string) {
			name := strings.ReplaceAll(r.name(), "-", "")
			r.create(t, resource{"table", name, func(ctx context.Context) error { _, err := r.tables.DeleteTable(ctx, name, nil); return err }, nil},
				func() error { _, err := r.tables.CreateTable(t.Context(), name, nil); return err })
			return r.tables, name
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
	key, err := r.blobs.GetUserDelegationCredential(t.Context(), blobs.KeyInfo{
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
