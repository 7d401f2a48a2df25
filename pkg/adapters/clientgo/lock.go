// Package azclientgo lets client-go's leader election use a blob, without a Kubernetes API.
//
//	lock, err := azclientgo.New(blob, hostname+"_"+uuid.NewString(), nil)
//	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock, LeaseDuration: 15 * time.Second, …})
//
// The election is client-go's: what it promises and what it does not is documented there. It judges leaders by the clocks of the
// candidates, and it has no fence. Package election below pessimistic is azconc's own, which has.
package azclientgo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

// DefaultTimeout is the bound of a call for client-go's usual durations: 15 s, less 10 s, less 2 s.
const DefaultTimeout = 3 * time.Second

// Options configures a Lock. The zero value selects the defaults.
type Options struct {
	// Timeout bounds each call, with its retries. A renewal whose success is reported late is counted late by the leader, and
	// not by the others: at most LeaseDuration - RenewDeadline - RetryPeriod keeps the leader from leading longer than they
	// wait. Defaults to DefaultTimeout.
	Timeout time.Duration

	// Event gets the events of the election, such as "became leader". Defaults to none.
	Event func(string)

	_ struct{}
}

// Lock is a resourcelock.Interface whose record is the content of a blob: the JSON form of a LeaderElectionRecord, with a count of
// writes. A write whose response is lost is resolved, so a leader is not refused because of its own renewal.
//
// A Lock is safe for concurrent use, but belongs to one elector. Requests: 1 per Get and per Update, with a second one for the
// Update that follows a Create; 2 for a Create; up to 3 for an Update that is refused.
type Lock struct {
	document *optimistic.Document[record]
	identity string
	path     string
	opts     Options

	mu   sync.Mutex
	seen azcore.ETag // the version of the last Get, Create or Update; guarded by mu
}

var _ resourcelock.Interface = (*Lock)(nil)

// record is what the blob holds. Writes makes the content of each renewal another one: times in it have whole seconds.
type record struct {
	resourcelock.LeaderElectionRecord
	Writes int64 `json:"writes"`
}

// New returns a Lock. Its container must exist; the blob is created by the first leader, and must not be written by anything else.
// The identity must be unique among the candidates, also among those that ran before: two with one identity both lead. New sends no
// request.
func New(blob *blockblob.Client, identity string, opts *Options) (*Lock, error) {
	if blob == nil || identity == "" {
		return nil, errors.New("azclientgo: a Lock needs a blob and an identity")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if o.Timeout < 0 {
		return nil, fmt.Errorf("azclientgo: a timeout of %v: it must not be negative", o.Timeout)
	}
	update := optimistic.UpdateOptions{Create: true, SendOptions: optimistic.SendOptions{
		Tries: -1, TryTimeout: o.Timeout / 3, MinRate: -1, Recreate: true, // a candidate does not delete the record
		Pause: retry.Backoff{Base: 50 * time.Millisecond, Cap: time.Second}, Grace: time.Millisecond, // the elector counts every second
	}}
	document, err := optimistic.NewDocument(blobs.NewJSON[record](blob), &optimistic.DocumentOptions{Update: update})
	if err != nil {
		return nil, err
	}
	return &Lock{document: document, identity: identity, path: resource.Path(blob.URL()), opts: o}, nil
}

// Get reads the record. The bytes, by which followers recognise a renewal, change with every write.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, l.opts.Timeout)
	defer cancel()
	version, err := l.document.Read(ctx)
	if err != nil {
		return nil, nil, l.status(err)
	}
	l.seen = version.ETag
	raw, err := json.Marshal(version.Value)
	return &version.Value.LeaderElectionRecord, bytes.Join([][]byte{raw, []byte(version.ETag)}, []byte("\n")), err
}

// Create creates the record. If there is one, the error is an AlreadyExists status.
func (l *Lock) Create(ctx context.Context, ler resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, ler, func(base optimistic.State) error {
		if base.Exists {
			return apierrors.NewAlreadyExists(group, l.path)
		}
		return nil
	})
}

// Update writes the record. If it was written since this Lock last read or wrote it, the error is a Conflict status.
func (l *Lock) Update(ctx context.Context, ler resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, ler, func(base optimistic.State) error {
		if !base.Exists {
			return optimistic.ErrNotFound
		}
		if base.ETag != l.seen {
			return optimistic.ErrConflict
		}
		return nil
	})
}

func (l *Lock) write(ctx context.Context, ler resourcelock.LeaderElectionRecord, check func(optimistic.State) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, l.opts.Timeout)
	defer cancel()
	res, err := l.document.Update(ctx, func(ctx context.Context, r *record) error {
		if err := check(optimistic.BaseOf(ctx)); err != nil {
			return err
		}
		*r = record{ler, r.Writes + 1}
		return nil
	})
	if err != nil {
		return l.status(err)
	}
	l.seen = res.ETag
	return nil
}

// group is what the errors of the Kubernetes API call the kind of a resource.
var group = schema.GroupResource{Group: "azconc", Resource: "blobs"}

// status returns the error that the elector looks for: it creates the record after NotFound only, and repeats a release after
// Conflict only.
func (l *Lock) status(err error) error {
	switch {
	case errors.Is(err, optimistic.ErrNotFound):
		return apierrors.NewNotFound(group, l.path)
	case errors.Is(err, optimistic.ErrConflict):
		return apierrors.NewConflict(group, l.path, err)
	}
	return err
}

// RecordEvent passes an event on to Options.Event.
func (l *Lock) RecordEvent(event string) {
	if l.opts.Event != nil {
		l.opts.Event(event)
	}
}

// Identity returns the identity of this candidate.
func (l *Lock) Identity() string { return l.identity }

// Describe returns the path of the blob.
func (l *Lock) Describe() string { return l.path }
