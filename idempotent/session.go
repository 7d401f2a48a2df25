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

// Sessions let the Consumers of a queue find out of each other whether they live. A message comes back when it was not
// renewed in time, which a process that is dead and one that was slow for a moment have in common, and the latter may have a
// handler at work that does not mind that its context has ended. With Sessions a Consumer that is given such a message looks
// whether the one that had it before is alive, and handles it at once if not; otherwise it puts the message back, and looks
// again after a third of Visibility.
//
// A session is the lease of a blob "azconcsession/…", which a Consumer holds while it runs and until its last handler has
// returned. Markers say which session claimed a message and at which delivery, at no request. A holder that is done with a
// message without having finished it says so, and nobody waits for it.
//
//	                        requests
//	a Consumer's run        4, and 1 per third of Duration
//	a message               none
//	that comes back         beside what Dedupe costs: 1 to claim it anew; 1 to look at another's session; 1 the first time
//	                        it is put back for that
//	that is given back      1 if it is no envelope; 2 if others may have received it meanwhile
//
// What it promises: as long as the session of a Consumer lives and Patience is not over, no other handles what it has in its
// hands. A delivery for which it is put back is no attempt, nor does it count for MaxDeliveries. What it costs: a message of a
// process that has died waits for the end of the lease, if that comes later than the end of Visibility.
//
// All Consumers of a queue must have Sessions on the same container: one without takes over at once, and a session in a
// container of which a Consumer does not know is alive for all it can tell.
//
// Sessions are safe for concurrent use, and by several Consumers, each of which has one of its own.
type Sessions struct {
	container *container.Client
	path      string
	o         SessionsOptions
}

// SessionsOptions tunes Sessions. The zero value is the default.
type SessionsOptions struct {
	// Duration is how long a session lives on when its process has died: 15 s to 60 s in whole seconds. It is renewed three
	// times in that. Defaults to 60 s.
	Duration time.Duration

	// Patience bounds how long a message waits, from when it first came back, for a session that lives and neither finishes
	// it nor gives it back. Then it is taken over all the same, and a Failed event says so. By the queue's clock. Defaults to
	// 10 min.
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

// ownerKey is the metadata that tells people whose session it is.
const ownerKey = "azconcowner"

// session is what a Consumer holds while it runs. When its lease is lost, it goes on under another name.
type session struct {
	of   *Sessions
	tell func(error)
	lost chan struct{} // the lease of the moment is lost
	quit context.CancelFunc
	keep sync.WaitGroup

	mu    sync.Mutex // guards what follows
	name  string     // the blob's path, which markers carry
	past  []string   // names it had before
	lease *pessimistic.Lease
}

// begin makes a session, which must be ended. After an error nothing is held.
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

// open makes a blob of a new name and leases it.
func (s *session) open(ctx context.Context) error {
	blob := s.of.container.NewBlockBlobClient(sessionPrefix + uuid.NewString())
	tries := 6
	if s.name != "" { // during an outage, the keeper asks again
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

// create makes the blob. Nobody else has the name, so sending it again is harmless.
func create(ctx context.Context, blob *blockblob.Client, tries int) error {
	host, _ := os.Hostname()
	owner := url.PathEscape(host) + "/" + fmt.Sprint(os.Getpid())
	err := resend(ctx, tries, tryTimeout, func(ctx context.Context) error {
		_, err := blob.Upload(ctx, streaming.NopCloser(bytes.NewReader(nil)), &blockblob.UploadOptions{Metadata: map[string]*string{ownerKey: to.Ptr(owner)}})
		return err
	})
	return azerr.Clean(err)
}

// discard deletes the blob. It gives up soon: GC finds what it leaves.
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
	return fmt.Errorf("the blob of a session stays behind: %w", azerr.Clean(err))
}

// keeper makes a new session whenever the lease is lost, and tries until it has one. Until then claims are made under the
// old name, which others take for dead.
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
			if retry.Sleep(ctx, pause.Base/2+pause.Wait(n)) != nil {
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

// ours tells whether a name is, or was, of this session: what is not in our hands then is in nobody's.
func (s *session) ours(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return name == s.name || slices.Contains(s.past, name)
}

// end gives the session back. Nil has none.
func (s *session) end(ctx context.Context) {
	if s == nil {
		return
	}
	s.quit()
	s.keep.Wait()
	l, name := s.current()
	s.close(ctx, l, name)
}

// close releases and deletes. Nothing depends on it: the lease runs out.
func (s *session) close(ctx context.Context, l *pessimistic.Lease, name string) {
	if err := l.Release(ctx); err != nil && !errors.Is(err, pessimistic.ErrLost) {
		s.tell(err)
	}
	if err := discard(ctx, s.of.container.NewBlockBlobClient(s.of.blobOf(name))); err != nil {
		s.tell(err)
	}
}
