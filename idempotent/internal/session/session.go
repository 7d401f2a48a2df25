// Package session shows other processes whether this one is alive: a session is the lease of a blob.
package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Prefix begins the names of the blobs, for lifecycle rules.
const Prefix = "azconcsession/"

// OwnerKey is the metadata name under which the owner of the session is recorded, for display.
const OwnerKey = "azconcowner"

// Session is the lease of a blob, held until the end of the session. If the lease is lost, the session continues with another blob.
type Session struct {
	container *container.Client
	path      string        // of the container
	duration  time.Duration // of the lease
	hooks     observe.Hooks
	report    func(error)
	lost      chan struct{} // the current lease is lost
	quit      context.CancelFunc
	keep      sync.WaitGroup

	mu    sync.Mutex // guards what follows
	name  string     // the blob's path, which markers carry
	past  []string   // earlier names
	lease *pessimistic.Lease
}

// Begin starts a session, which must be ended. While the service does not answer, it tries again until ctx ends. After an error
// nothing is held. report is called with errors of the session, which continues, or begins later.
func Begin(ctx context.Context, in *container.Client, duration time.Duration, hooks observe.Hooks, report func(error)) (*Session, error) {
	s := &Session{container: in, path: resource.Path(in.URL()), duration: duration, hooks: hooks, report: report, lost: make(chan struct{}, 1)}
	passes := func(err error) bool {
		out := azerr.Classify(err)
		return out.Transient() || out.Ambiguous()
	}
	if err := s.openAgain(ctx, passes); err != nil {
		return nil, err
	}
	keeping, quit := context.WithCancel(context.WithoutCancel(ctx))
	s.quit = quit
	s.keep.Go(func() { s.keeper(keeping) })
	return s, nil
}

// openAgain opens until that succeeds, ctx ends, or an error does not pass.
func (s *Session) openAgain(ctx context.Context, passes func(error) bool) error {
	pause := retry.Backoff{Base: 2 * time.Second, Cap: time.Minute}
	for n := 0; ; n++ {
		err := s.open(ctx)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("session in %s: %w", s.path, err)
		if ctx.Err() != nil || !passes(err) {
			return err
		}
		s.report(err)
		if retry.Sleep(ctx, pause.Base/2+pause.In(ctx).Wait(n)) != nil {
			return err
		}
	}
}

// open creates a blob with a new name and leases it.
func (s *Session) open(ctx context.Context) error {
	blob := s.container.NewBlockBlobClient(Prefix + uuid.NewString())
	tries := 6
	if s.name != "" { // during an outage, the keeper tries again
		tries = 1
	}
	if err := s.create(ctx, blob, tries); err != nil {
		return err
	}
	l, err := pessimistic.Acquire(ctx, pessimistic.NewBlob(blob), &pessimistic.AcquireOptions{
		Duration: s.duration, Hooks: observe.Hooks{Span: s.hooks.Span, Event: func(_ context.Context, e observe.Event) {
			if e.Kind != observe.Lost {
				return
			}
			select {
			case s.lost <- struct{}{}:
			default: // the keeper knows
			}
		}}})
	if err != nil {
		return errors.Join(err, s.discard(ctx, blob))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name != "" {
		s.past = append(s.past, s.name)
	}
	s.name, s.lease = resource.Path(blob.URL()), l
	return nil
}

// create creates the blob. Nobody else uses the name, so repeating it is harmless.
func (s *Session) create(ctx context.Context, blob *blockblob.Client, tries int) error {
	host, _ := os.Hostname()
	owner := url.PathEscape(host) + "/" + fmt.Sprint(os.Getpid())
	err := send.Resend(ctx, s.wire(blob), "Put Blob", tries, send.TryTimeout, func(ctx context.Context) error {
		_, err := blob.Upload(ctx, streaming.NopCloser(bytes.NewReader(nil)), &blockblob.UploadOptions{Metadata: map[string]*string{OwnerKey: to.Ptr(owner)}})
		return err
	})
	return azerr.Clean(err)
}

func (s *Session) wire(blob *blockblob.Client) wire.Wire {
	return wire.Observed(s.hooks, resource.Path(blob.URL()), nil)
}

// discard deletes the blob. It gives up soon: GC deletes what remains.
func (s *Session) discard(ctx context.Context, blob *blockblob.Client) error {
	ctx, cancel := retry.Detached(ctx, send.TryTimeout)
	defer cancel()
	err := send.Resend(ctx, s.wire(blob), "Delete Blob", 3, send.TryTimeout, func(ctx context.Context) error {
		_, err := blob.Delete(ctx, nil)
		return err
	})
	if err == nil || azerr.Classify(err).Kind == azerr.NotFound {
		return nil
	}
	return fmt.Errorf("the blob of a session was not deleted: %w", azerr.Clean(err))
}

// keeper opens a new session whenever the lease is lost, and retries until it has one. Until then claims are made under
// the old name, which others consider over.
func (s *Session) keeper(ctx context.Context) {
	always := func(error) bool { return true }
	for {
		select {
		case <-s.lost:
		case <-ctx.Done():
			return
		}
		had, name := s.Current()
		s.report(fmt.Errorf("session %s is over, a new one begins: %w", name, had.Err()))
		if s.openAgain(ctx, always) != nil {
			return
		}
		s.close(ctx, had, name)
	}
}

// Current returns the lease and its name.
func (s *Session) Current() (*pessimistic.Lease, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease, s.name
}

// Ours reports whether a name belongs, or belonged, to this session: a message claimed under it that this process does
// not hold is held by nobody.
func (s *Session) Ours(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return name == s.name || slices.Contains(s.past, name)
}

// End ends the session. It does nothing if s is nil.
func (s *Session) End(ctx context.Context) {
	if s == nil {
		return
	}
	s.quit()
	s.keep.Wait()
	l, name := s.Current()
	s.close(ctx, l, name)
}

// close releases the lease and deletes the blob. Nothing depends on it: the lease expires.
func (s *Session) close(ctx context.Context, l *pessimistic.Lease, name string) {
	if err := l.Release(ctx); err != nil && !errors.Is(err, pessimistic.ErrLost) {
		s.report(err)
	}
	if err := s.discard(ctx, s.container.NewBlockBlobClient(strings.TrimPrefix(name, s.path+"/"))); err != nil {
		s.report(err)
	}
}
