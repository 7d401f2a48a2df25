package pessimistic

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// world is the in-memory service with faults before it and a witness behind them: what the witness has seen was carried
// out, whatever response the client received.
type world struct {
	t       *testing.T
	service *aztest.Service
	faults  *aztest.Injector
	witness *witness
}

// newWorld has a container "box" with a blob "b" in it.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, nil)
}

func newWorldWith(t *testing.T, opts *aztest.Options) *world {
	t.Helper()
	s := aztest.New(opts)
	w := &world{t: t, service: s, witness: &witness{next: s}}
	seed := uint64(0)
	if opts != nil {
		seed = opts.Seed
	}
	w.faults = aztest.Inject(w.witness, seed)
	w.put("b", "content")
	w.reset()
	return w
}

// inBubble runs a test in which time is fake.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

func (w *world) reset() {
	w.service.Reset()
	w.faults.Reset()
	w.witness.reset()
}

func (w *world) put(name, content string) {
	w.t.Helper()
	w.service.BlockBlob("box", name) // makes the container
	if _, err := w.service.BlockBlob("box", name).Upload(context.Background(), body(content), nil); err != nil {
		w.t.Fatalf("put %s: %v", name, err)
	}
}

func (w *world) get(name string) string {
	w.t.Helper()
	resp, err := w.service.BlockBlob("box", name).DownloadStream(context.Background(), nil)
	if err != nil {
		w.t.Fatalf("get %s: %v", name, err)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// container is a client that goes through the faults. Its retries are the SDK's defaults: it is for the code under test
// to turn them off.
func (w *world) container() *container.Client { return w.containerOver(w.faults) }

func (w *world) containerOver(transport policy.Transporter) *container.Client {
	credential, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		w.t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(w.service.BlobURL()+"/box", credential,
		&container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: transport}})
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

func (w *world) blob(name string) *blockblob.Client { return w.container().NewBlockBlobClient(name) }

// look asks the service itself, without faults and without being counted.
func (w *world) look(name string) lease.Observation {
	w.t.Helper()
	seen, err := Look(context.Background(), Blob(w.service.BlockBlob("box", name)), nil)
	if err != nil {
		w.t.Fatalf("look at %s: %v", name, err)
	}
	return seen
}

func (w *world) state(name string) lease.State {
	w.t.Helper()
	return w.look(name).State
}

// steal acquires as another client, directly.
func (w *world) steal(name string, d time.Duration) *Lease {
	w.t.Helper()
	l, err := TryAcquire(context.Background(), Blob(w.service.BlockBlob("box", name)), &AcquireOptions{Duration: d})
	if err != nil {
		w.t.Fatalf("steal %s: %v", name, err)
	}
	w.t.Cleanup(func() { _ = l.Release(context.Background()) })
	return l
}

// sent are the operations that were sent, with their answers.
func (w *world) sent() []string {
	var out []string
	for _, r := range w.faults.Log() {
		out = append(out, r.String())
	}
	return out
}

// ops are the operations that were sent, shortened: "acquire", "renew", "look", "stamp", …
func (w *world) ops() []string {
	var out []string
	for _, r := range w.faults.Log() {
		out = append(out, short(r.Op))
	}
	return out
}

func short(op string) string {
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

func (w *world) wantOps(want ...string) {
	w.t.Helper()
	if got := w.ops(); !slices.Equal(got, want) {
		w.t.Errorf("sent %v, want %v:\n%s", got, want, strings.Join(w.sent(), "\n"))
	}
}

func body(content string) io.ReadSeekCloser { return nopCloser{bytes.NewReader([]byte(content))} }

type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }

// carried is a request that the service has carried out.
type carried struct {
	at       time.Time
	op       string // as short names it
	resource string
	status   int
	lease    string // the id in the answer, or in the request
	fence    string // in the metadata of the request
	duration time.Duration
}

// witness stands between the faults and the service.
type witness struct {
	next policy.Transporter
	mu   sync.Mutex
	log  []carried
	tell func(carried) // called without the mutex; may be nil
}

func (w *witness) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = nil
}

// on makes tell receive every request that was carried out, before its response is returned.
func (w *witness) on(tell func(carried)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell = tell
}

func (w *witness) seen() []carried {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

func header(h http.Header, name string) string {
	for key, values := range h {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

func (w *witness) Do(r *http.Request) (*http.Response, error) {
	c := carried{at: time.Now(), resource: strings.TrimPrefix(r.URL.Path, "/"+aztest.Account+"/")}
	switch {
	case header(r.Header, "x-ms-lease-action") != "":
		c.op = header(r.Header, "x-ms-lease-action")
	case r.URL.Query().Get("comp") == "metadata":
		c.op = "stamp"
	case r.Method == http.MethodPut:
		c.op = "put"
	default:
		c.op = strings.ToLower(r.Method)
	}
	c.fence = header(r.Header, "x-ms-meta-azconcfence")
	if seconds, err := strconv.Atoi(header(r.Header, "x-ms-lease-duration")); err == nil {
		c.duration = time.Duration(seconds) * time.Second
	}
	resp, err := w.next.Do(r)
	if err != nil {
		return resp, err
	}
	c.status = resp.StatusCode
	if c.lease = header(resp.Header, "x-ms-lease-id"); c.lease == "" {
		c.lease = header(r.Header, "x-ms-lease-id")
	}
	w.mu.Lock()
	w.log = append(w.log, c)
	tell := w.tell
	w.mu.Unlock()
	if tell != nil {
		tell(c)
	}
	return resp, nil
}

// code is the service's error code in the chain.
func code(err error) string {
	if r, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return r.ErrorCode
	}
	return ""
}

// events collects what the hooks tell.
type events struct {
	mu  sync.Mutex
	all []Event
}

func (e *events) hooks() Hooks {
	return Hooks{Event: func(one Event) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all = append(e.all, one)
	}}
}

func (e *events) kinds() []EventKind {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []EventKind
	for _, one := range e.all {
		out = append(out, one.Kind)
	}
	return out
}

func mustLost(t *testing.T, err error, reason Reason) *LostError {
	t.Helper()
	lost, ok := errors.AsType[*LostError](err)
	if !ok || !errors.Is(err, ErrLost) || lost.Reason != reason {
		t.Fatalf("err = %v, want a *LostError with reason %v", err, reason)
	}
	return lost
}

func mustRelease(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// pollEvery looks at fixed intervals.
func pollEvery(d time.Duration) retry.Backoff {
	return retry.Backoff{Base: d, Cap: d, Rand: func() float64 { return 0 }}
}

func deleteWith(id string) *blob.DeleteOptions {
	return &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}}}
}

// pass lets the bubble's time pass.
func pass(d time.Duration) { bubble.Sleep(d) }

// rewrite changes a blob's metadata as a foreign program does, under a lease or, with "", without one.
func rewrite(ctx context.Context, w *world, name, lease string, change func(map[string]string)) error {
	client := w.service.BlockBlob("box", name)
	props, err := client.GetProperties(ctx, nil)
	if err != nil {
		return err
	}
	metadata := lowered(props.Metadata)
	change(metadata)
	_, err = client.SetMetadata(ctx, pointers(metadata), &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{
		LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: ptr.Optional(lease)}}})
	return err
}
