package pessimistic

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// world is a pesstest.World with what only these tests need.
type world struct{ *pesstest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, nil)
}

func newWorldWith(t *testing.T, opts *aztest.Options) *world {
	t.Helper()
	return &world{pesstest.New(t, opts)}
}

// inBubble runs a test in which time is fake.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

// inBubbles is inBubble with a Date that is exact, and with one that lags.
func inBubbles(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	pesstest.InBubbles(t, func(t *testing.T, w *pesstest.World) { test(t, &world{w}) })
}

// steal acquires as another client, without faults.
func (w *world) steal(name string, d time.Duration) *Lease {
	w.T.Helper()
	l, err := TryAcquire(context.Background(), NewBlob(w.Service.BlockBlob("box", name)), &AcquireOptions{Duration: d})
	if err != nil {
		w.T.Fatalf("steal %s: %v", name, err)
	}
	w.T.Cleanup(func() { _ = l.Release(context.Background()) })
	return l
}

// events collects what the hooks report.
type events struct {
	mu  sync.Mutex
	all []observe.Event
}

func (e *events) hooks() observe.Hooks {
	return observe.Hooks{Event: func(_ context.Context, one observe.Event) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all = append(e.all, one)
	}}
}

func (e *events) kinds() []observe.Kind {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []observe.Kind
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

// rewrite changes a blob's metadata as a foreign program does, under a lease or, with "", without one.
func rewrite(ctx context.Context, w *world, name, lease string, change func(map[string]string)) error {
	client := w.Service.BlockBlob("box", name)
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

// Get reads a blob without faults.
func (w *world) Get(name string) string {
	w.T.Helper()
	resp, err := w.Service.BlockBlob("box", name).DownloadStream(context.Background(), nil)
	if err != nil {
		w.T.Fatalf("get %s: %v", name, err)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.T.Fatal(err)
	}
	return string(data)
}

// codeOf returns the service's error code in the chain of err.
func codeOf(err error) string {
	if r, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return r.ErrorCode
	}
	return ""
}

// pollEvery polls at fixed intervals.
func pollEvery(d time.Duration) retry.Backoff {
	return retry.Backoff{Base: d, Cap: d, Rand: func() float64 { return 0 }}
}

// deleteWith deletes under a lease.
func deleteWith(id string) *blob.DeleteOptions {
	return &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}}}
}
