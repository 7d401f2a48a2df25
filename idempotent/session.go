package idempotent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

// Sessions let the Consumers of a queue find out whether another one is alive. A message is redelivered when it was not
// renewed in time, whether its process has crashed or was only slow for a moment; in the latter case a handler that
// ignores the end of its context may still be running. With Sessions, a Consumer that receives such a message checks
// whether its previous consumer is alive. If not, it handles the message at once; otherwise it puts the message back,
// and checks again after a third of Visibility.
//
// A session is the lease of a blob "azconcsession/…", which a Consumer holds while it runs and until its last handler
// has returned. Markers record which session claimed a message, and at which delivery, at no extra request. A session
// that gives up a message without having finished it records that, and nobody waits for it.
//
//	                        requests
//	a Consumer's run        4, and 1 per third of Duration
//	a message               none
//	one redelivered         besides the cost of Dedupe: 1 to claim it again; 1 to look at another's session; 1 the first
//	                        time it is put back for that
//	one given back          1 if it is not an envelope; 2 if others may have received it meanwhile
//
// Sessions promise that as long as the session of a Consumer is alive and Patience has not passed, no other Consumer
// handles the messages it holds. A delivery that is put back for this reason is not an attempt, and does not count for
// MaxDeliveries. The price is that a message of a crashed process waits until the lease expires, if that is later than
// the end of Visibility.
//
// All Consumers of a queue must have Sessions on the same container: one without Sessions takes over at once, and a
// session in another container always counts as alive.
//
// Sessions are safe for concurrent use, and can be shared by several Consumers, each of which has its own session.
type Sessions struct {
	container *container.Client
	path      string
	o         SessionsOptions
}

// SessionsOptions configures Sessions. The zero value selects the defaults.
type SessionsOptions struct {
	// Duration is how long a session outlives a crash of its process: 15 s to 60 s in whole seconds. It is renewed
	// every third of that. Defaults to 60 s.
	Duration time.Duration

	// Patience bounds how long a message waits, from its first redelivery, for a session that is alive but neither
	// finishes it nor gives it back. After that it is taken over all the same, and a Failed event reports it. By the
	// queue's clock. Defaults to 10 min.
	Patience time.Duration

	_ struct{}
}

// NewSessions returns the sessions in a container, which must exist by the time of Consumer.Run. It sends no request.
func NewSessions(c *container.Client, opts *SessionsOptions) (*Sessions, error) {
	if c == nil {
		return nil, errors.New("no container client")
	}
	var o SessionsOptions
	if opts != nil {
		o = *opts
	}
	o.Duration, o.Patience = cmp.Or(o.Duration, time.Minute), cmp.Or(o.Patience, 10*time.Minute)
	switch {
	case o.Duration < 15*time.Second || o.Duration > time.Minute || o.Duration%time.Second != 0:
		return nil, fmt.Errorf("SessionsOptions.Duration: %v is not in 15s…60s in whole seconds", o.Duration)
	case o.Patience < 0:
		return nil, fmt.Errorf("SessionsOptions.Patience: %v is negative", o.Patience)
	}
	return &Sessions{container: c, path: resource.Path(c.URL()), o: o}, nil
}

// sessionPrefix begins the names of the blobs, for lifecycle rules.
const sessionPrefix = "azconcsession/"

// ownerKey is the metadata name under which the owner of the session is recorded, for display.
const ownerKey = "azconcowner"

// session is what a Consumer holds while it runs. If its lease is lost, it continues under a new name.
type session struct {
	of   *Sessions
	tell func(error)
	lost chan struct{} // the current lease is lost
	quit context.CancelFunc
	keep sync.WaitGroup

	mu    sync.Mutex // guards what follows
	name  string     // the blob's path, which markers carry
	past  []string   // earlier names
	lease *pessimistic.Lease
}

// begin starts a session, which must be ended. After an error nothing is held.
func (k *Sessions) begin(ctx context.Context, tell func(error)) (*session, error) {
	s := &session{of: k, tell: tell, lost: make(chan struct{}, 1)}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("session in %s: %w", k.path, err)
	}
	keeping, quit := context.WithCancel(context.WithoutCancel(ctx))
	s.quit = quit
	s.keep.Go(func() { s.keeper(keeping) })
	return s, nil
}

// open creates a blob with a new name and leases it.
func (s *session) open(ctx context.Context) error {
	blob := s.of.container.NewBlockBlobClient(sessionPrefix + uuid.NewString())
	tries := 6
	if s.name != "" { // during an outage, the keeper tries again
		tries = 1
	}
	if err := create(ctx, blob, tries); err != nil {
		return err
	}
	l, err := pessimistic.Acquire(ctx, pessimistic.Blob(blob), &pessimistic.AcquireOptions{
		Duration: s.of.o.Duration, Hooks: pessimistic.Hooks{Event: func(e pessimistic.Event) {
			if e.Kind != pessimistic.Lost {
				return
			}
			select {
			case s.lost <- struct{}{}:
			default: // the keeper knows
			}
		}}})
	if err != nil {
		return errors.Join(err, discard(ctx, blob))
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
func create(ctx context.Context, blob *blockblob.Client, tries int) error {
	host, _ := os.Hostname()
	owner := url.PathEscape(host) + "/" + fmt.Sprint(os.Getpid())
	err := resend(ctx, tries, tryTimeout, func(ctx context.Context) error {
		_, err := blob.Upload(ctx, streaming.NopCloser(bytes.NewReader(nil)), &blockblob.UploadOptions{Metadata: map[string]*string{ownerKey: to.Ptr(owner)}})
		return err
	})
	return azerr.Clean(err)
}

// discard deletes the blob. It gives up soon: GC deletes what remains.
func discard(ctx context.Context, blob *blockblob.Client) error {
	ctx, cancel := retry.Detached(ctx, tryTimeout)
	defer cancel()
	err := resend(ctx, 3, tryTimeout, func(ctx context.Context) error {
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
func (s *session) keeper(ctx context.Context) {
	pause := retry.Backoff{Base: 2 * time.Second, Cap: time.Minute}
	for {
		select {
		case <-s.lost:
		case <-ctx.Done():
			return
		}
		had, name := s.current()
		s.tell(fmt.Errorf("session %s is over, a new one begins: %w", name, had.Err()))
		for n := 0; ; n++ {
			err := s.open(ctx)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			s.tell(fmt.Errorf("session in %s: %w", s.of.path, err))
			if retry.Sleep(ctx, pause.Base/2+pause.In(ctx).Wait(n)) != nil {
				return
			}
		}
		s.close(ctx, had, name)
	}
}

// current returns the lease and its name.
func (s *session) current() (*pessimistic.Lease, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease, s.name
}

// ours reports whether a name belongs, or belonged, to this session: a message claimed under it that this process does
// not hold is held by nobody.
func (s *session) ours(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return name == s.name || slices.Contains(s.past, name)
}

// end ends the session. It does nothing if s is nil.
func (s *session) end(ctx context.Context) {
	if s == nil {
		return
	}
	s.quit()
	s.keep.Wait()
	l, name := s.current()
	s.close(ctx, l, name)
}

// close releases the lease and deletes the blob. Nothing depends on it: the lease expires.
func (s *session) close(ctx context.Context, l *pessimistic.Lease, name string) {
	if err := l.Release(ctx); err != nil && !errors.Is(err, pessimistic.ErrLost) {
		s.tell(err)
	}
	if err := discard(ctx, s.of.container.NewBlockBlobClient(s.of.blobOf(name))); err != nil {
		s.tell(err)
	}
}
