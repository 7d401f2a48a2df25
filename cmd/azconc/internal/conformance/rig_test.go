package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
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
	"github.com/azconc/azconc/pkg/azerr"
)

// namePrefix begins the name of everything that is created. Table names have no hyphens.
const namePrefix = "azconc-conformance-"

// rig is the account, with its clients. Those of a service that it does not have are nil.
type rig struct {
	ctx      context.Context // an interrupt ends it
	account  *azaccount.Account
	emulator bool
	only     *regexp.Regexp // the sections to ask
	out      io.Writer      // the table
	stderr   io.Writer
	prefix   string // namePrefix, and an id of this run

	transport *http.Transport
	requests  atomic.Int64
	names     atomic.Int64

	blobs  *blobs.Client
	tables *aztables.ServiceClient
	queues *azqueue.ServiceClient
	files  *files.Client

	rules, different, known, left int
}

// newRig makes the clients of the account that the command would use. All send their requests by r.Do, which counts them.
func newRig(ctx context.Context, getenv func(string) string, only string, over *http.Transport) (r *rig, err error) {
	r = &rig{ctx: ctx, prefix: namePrefix + strings.ToLower(rand.Text()[:8]) + "-", transport: over}
	if r.only, err = regexp.Compile(only); err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	if r.account, err = azaccount.Resolve(azaccount.Flags{}, getenv); err != nil {
		return nil, err
	}
	if r.account.Endpoint(azaccount.Blob) == "" {
		return nil, &azaccount.Error{Message: "no account is given: set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN"}
	}
	r.emulator = r.account.Emulator(azaccount.Blob)
	r.transport.ResponseHeaderTimeout = 90 * time.Second
	r.transport.MaxIdleConnsPerHost = 32
	options := policy.ClientOptions{Transport: r, PerCallPolicies: []policy.Policy{requestsOfRules{}}}
	if r.blobs, err = r.account.BlobService(&blobs.ClientOptions{ClientOptions: options}); err == nil && r.has("table") {
		r.tables, err = r.account.TableService(&aztables.ClientOptions{ClientOptions: options})
	}
	if err == nil && r.has("queue") {
		r.queues, err = r.account.QueueService(&azqueue.ClientOptions{ClientOptions: options})
	}
	if err == nil && r.has("file") {
		r.files, err = r.account.FileService(&files.ClientOptions{ClientOptions: options})
	}
	return r, err
}

// Do implements policy.Transporter. Its errors have no URL, in which a signature may be.
func (r *rig) Do(hr *http.Request) (*http.Response, error) {
	r.requests.Add(1)
	client := http.Client{Transport: r.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(hr)
	return resp, azerr.Clean(err)
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

// resource is a container, table, queue or share.
type resource struct {
	kind, name     string
	create, remove func(ctx context.Context) error
	unlease        func(ctx context.Context) error // breaks a lease that prevents the removal; nil where there are none
}

// removalTime bounds a removal, which takes place after an interrupt, too.
const removalTime = 3 * time.Minute

// create creates a resource, which is removed at the end of the test. What cannot be removed is named.
func (r *rig) create(t *testing.T, x resource) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), removalTime)
		defer cancel()
		err := x.remove(ctx)
		if azerr.Classify(err).Kind == azerr.Held && x.unlease != nil && x.unlease(ctx) == nil {
			err = x.remove(ctx)
		}
		if out := azerr.Classify(err); err != nil && out.Kind != azerr.NotFound && !strings.HasSuffix(out.Code, "BeingDeleted") {
			r.left++
			fmt.Fprintf(r.stderr, "conformance: error: could not remove %s %s: %s\nconformance: hint: azconc %s delete %s\n",
				x.kind, x.name, r.hide(azerr.Summary(err)), x.kind, x.name)
		}
	})
	if err := x.create(r.ctx); err != nil {
		if r.ctx.Err() != nil {
			t.Skip("interrupted")
		}
		t.Fatalf("create the %s of the section: %s", x.kind, r.hide(azerr.Summary(err)))
	}
}

// harness returns the account for the suite.
func (r *rig) harness() harness {
	return harness{
		Emulator: r.emulator,
		Over:     func() bool { return r.ctx.Err() != nil },
		Sign:     r.sign,
		Container: func(t *testing.T) *container.Client {
			name := r.name()
			c := r.blobs.NewContainerClient(name)
			r.create(t, resource{
				"container", name,
				func(ctx context.Context) error { _, err := c.Create(ctx, nil); return err },
				func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err },
				func(ctx context.Context) error {
					holder, err := lease.NewContainerClient(c, nil)
					if err == nil {
						_, err = holder.BreakLease(ctx, &lease.ContainerBreakOptions{BreakPeriod: new(int32(0))})
					}
					return err
				},
			})
			return c
		},
		Queue: func(t *testing.T) *azqueue.QueueClient {
			name := r.name()
			c := r.queues.NewQueueClient(name)
			r.create(t, resource{
				"queue", name,
				func(ctx context.Context) error { _, err := c.Create(ctx, nil); return err },
				func(ctx context.Context) error { _, err := c.Delete(ctx, nil); return err }, nil,
			})
			return c
		},
		Share: func(t *testing.T) *share.Client {
			name := r.name()
			c := r.files.NewShareClient(name)
			all := &share.DeleteOptions{DeleteSnapshots: new(share.DeleteSnapshotsOptionTypeInclude)}
			r.create(t, resource{
				"share", name,
				func(ctx context.Context) error { _, err := c.Create(ctx, nil); return err },
				func(ctx context.Context) error { _, err := c.Delete(ctx, all); return err },
				func(ctx context.Context) error {
					holder, err := filelease.NewShareClient(c, nil)
					if err == nil {
						_, err = holder.Break(ctx, &filelease.ShareBreakOptions{BreakPeriod: new(int32(0))})
					}
					return err
				},
			})
			return c
		},
		Tables: func(t *testing.T) (*aztables.ServiceClient, string) {
			name := strings.ReplaceAll(r.name(), "-", "")
			r.create(t, resource{
				"table", name,
				func(ctx context.Context) error { _, err := r.tables.CreateTable(ctx, name, nil); return err },
				func(ctx context.Context) error { _, err := r.tables.DeleteTable(ctx, name, nil); return err }, nil,
			})
			return r.tables, name
		},
	}
}

// sign returns a URL with which anybody can read a blob, signed with the account's credential.
func (r *rig) sign(t *testing.T, b *blockblob.Client) string {
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
