// Package pesstest is shared by the tests of package pessimistic and of the packages below it.
package pesstest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/lease/bloblease"
	"github.com/azconc/azconc/pkg/ptr"
)

// World is the in-memory service, with faults before it and a witness behind them: what the witness has seen was carried
// out, whatever response the client received.
type World struct {
	T       *testing.T
	Service *aztest.Service
	Faults  *aztest.Injector
	Witness *Witness
	Lag     time.Duration // of the Date header
}

// New returns a World with a container "box" and a blob "b" in it.
func New(t *testing.T, opts *aztest.Options) *World {
	t.Helper()
	s := aztest.New(opts)
	w := &World{T: t, Service: s, Witness: &Witness{next: s}}
	seed := uint64(0)
	if opts != nil {
		seed, w.Lag = opts.Seed, opts.DateLag
	}
	w.Faults = aztest.Inject(w.Witness, seed)
	w.Put("b", "content")
	w.Reset()
	return w
}

// InBubble runs a test in which time is fake.
func InBubble(t *testing.T, test func(t *testing.T, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, New(t, nil)) })
}

// DateLag is that of recorded accounts.
const DateLag = time.Second

// InBubbles is InBubble with a service whose Date header is exact, and with one whose Date lags behind its writes by up to
// two seconds and goes back by a second now and then, as that of recorded accounts does.
func InBubbles(t *testing.T, test func(t *testing.T, w *World)) {
	t.Helper()
	for name, lag := range map[string]time.Duration{"Date is exact": 0, "Date lags": DateLag} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, New(t, &aztest.Options{DateLag: lag})) })
		})
	}
}

// Latency is how long a request takes where that matters.
const Latency = 5 * time.Millisecond

// WithLatency returns the options of a service whose requests take time.
func WithLatency(seed uint64) *aztest.Options {
	return &aztest.Options{Seed: seed, Latency: func() time.Duration { return Latency }}
}

// Reset forgets all requests.
func (w *World) Reset() {
	w.Service.Reset()
	w.Faults.Reset()
	w.Witness.reset()
}

// Put writes a blob without faults.
func (w *World) Put(name, content string) {
	w.T.Helper()
	w.Service.BlockBlob("box", name) // creates the container
	if _, err := w.Service.BlockBlob("box", name).Upload(context.Background(), Body(content), nil); err != nil {
		w.T.Fatalf("put %s: %v", name, err)
	}
}

// Container returns a client whose requests meet the faults. Its retries are the SDK's defaults: the code under test has
// to turn them off.
func (w *World) Container() *container.Client { return w.ContainerOver(w.Faults) }

// ContainerOver returns a client over a transport.
func (w *World) ContainerOver(transport policy.Transporter) *container.Client {
	credential, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		w.T.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(w.Service.BlobURL()+"/box", credential,
		&container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: transport}})
	if err != nil {
		w.T.Fatal(err)
	}
	return client
}

// Blob returns a client whose requests meet the faults.
func (w *World) Blob(name string) *blockblob.Client { return w.Container().NewBlockBlobClient(name) }

// Look returns the state of a blob's lease. The request meets no faults and is not counted.
func (w *World) Look(name string) lease.Observation {
	w.T.Helper()
	seen, err := bloblease.NewBlob(w.Service.BlockBlob("box", name).BlobClient()).Look(context.Background(), "")
	if err != nil {
		w.T.Fatalf("look at %s: %v", name, err)
	}
	return seen
}

// State returns the state of a blob's lease, as Look does.
func (w *World) State(name string) lease.State {
	w.T.Helper()
	return w.Look(name).State
}

// Leased returns the names of the blobs whose lease is held.
func (w *World) Leased() (names []string) {
	w.T.Helper()
	for pager := w.Service.Container("box").NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(context.Background())
		if err != nil {
			w.T.Fatal(err)
		}
		for _, item := range page.Segment.BlobItems {
			if state := lease.State(ptr.Value(item.Properties.LeaseState)); !state.Free() {
				names = append(names, ptr.Value(item.Name))
			}
		}
	}
	return names
}

// Sent returns the operations that were sent, with their responses.
func (w *World) Sent() []string {
	var out []string
	for _, r := range w.Faults.Log() {
		out = append(out, r.String())
	}
	return out
}

// Ops returns the operations that were sent, shortened: "acquire", "renew", "look", "stamp", …
func (w *World) Ops() []string {
	var out []string
	for _, r := range w.Faults.Log() {
		out = append(out, Short(r.Op))
	}
	return out
}

// Short names an operation as Ops does.
func Short(op string) string {
	switch op {
	case "Get Blob Properties", "Get Container Properties":
		return "look"
	case "Set Blob Metadata":
		return "stamp"
	case "Put Blob":
		return "put"
	case "List Blobs":
		return "list"
	}
	verb, _, _ := strings.Cut(op, " ")
	return strings.ToLower(verb)
}

// WantOps fails the test unless exactly these operations were sent.
func (w *World) WantOps(want ...string) {
	w.T.Helper()
	if got := w.Ops(); !slices.Equal(got, want) {
		w.T.Errorf("sent %v, want %v:\n%s", got, want, strings.Join(w.Sent(), "\n"))
	}
}

// Body returns content as a request's body.
func Body(content string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(content)) }

// Slack is the time that a waiter may need after an outage, or after the lease has become free: a wait between two looks, and the
// look itself and an acquisition, each of which may be hanging and be repeated.
const Slack = 5*time.Second + 5*time.Second + 2500*time.Millisecond

// InOutages runs a test with each kind and length of an outage, of which the longest is twice the shortest lease.
func InOutages(t *testing.T, test func(t *testing.T, w *World, fault aztest.Fault, outage time.Duration)) {
	for _, kind := range []aztest.FaultKind{aztest.Refuse, aztest.Throttle, aztest.Hang, aztest.LoseRequest, aztest.LoseAnswer} {
		for _, outage := range []time.Duration{time.Second, 10 * time.Second, 30 * time.Second} {
			t.Run(fmt.Sprintf("%s for %v", kind, outage), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, New(t, WithLatency(0)), aztest.Fault{Kind: kind}, outage) })
			})
		}
	}
}
