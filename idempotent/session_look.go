package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
)

// blobOf returns the blob of a session's name in this container, or "" if the name belongs to another container.
func (k *Sessions) blobOf(name string) string {
	blob, ok := strings.CutPrefix(name, k.path+"/")
	if !ok || !strings.HasPrefix(blob, sessionPrefix) {
		return ""
	}
	return blob
}

// lookTimeout leaves time for the rest of a claim.
const lookTimeout = tryTimeout / 3

// living checks whether a session is alive: alive is nil if it is not, and names its owner if it is. An error means
// that this cannot be known now. Requests: 1.
func (k *Sessions) living(ctx context.Context, name string) (alive, err error) {
	blob := k.blobOf(name)
	if blob == "" {
		return fmt.Errorf("session %s is not in container %s", name, k.path), nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	look := func(ctx context.Context) (lease.Observation, error) {
		return pessimistic.Look(ctx, pessimistic.Blob(k.container.NewBlobClient(blob)), nil)
	}
	seen, err := look(ctx)
	switch {
	case err == nil && seen.State.Free(), noSuchBlob(err):
		return nil, nil
	case err == nil:
		owner, _ := url.PathUnescape(seen.Metadata[ownerKey])
		return fmt.Errorf("session %s of %s is alive", name, cmp.Or(owner, "another")), nil
	}
	return nil, &outage{fmt.Errorf("session %s may be alive: %w", name, azerr.Clean(err)), func(ctx context.Context) error {
		if _, err := look(ctx); err != nil && !noSuchBlob(err) {
			return err
		}
		return nil
	}}
}

// noSuchBlob reports whether the service says that the blob does not exist. A 404 without a code may come from an
// intermediary, and a missing container says nothing about the session.
func noSuchBlob(err error) bool {
	out := azerr.Classify(err)
	return out.Kind == azerr.NotFound && out.Code != "" && out.Code != "ContainerNotFound"
}

// looks asks about each session once.
type looks struct {
	of   *Sessions
	seen map[string]error
}

func (l *looks) living(ctx context.Context, name string) (alive, err error) {
	alive, seen := l.seen[name]
	if seen {
		return alive, nil
	}
	if alive, err = l.of.living(ctx, name); err != nil {
		return nil, err
	}
	if l.seen == nil {
		l.seen = map[string]error{}
	}
	l.seen[name] = alive
	return alive, nil
}

// sessionAge is the minimum age of an unleased blob for GC to delete it: a session begins without a lease.
const sessionAge = time.Hour

// GC deletes the blobs of sessions that crashed, and returns how many it deleted; a session that ends normally deletes
// its own. Others consider a session without a blob to be over, which it is. A blob that is leased, or younger than an
// hour, is kept. A lifecycle rule of the account does the same for free: delete blobs whose names begin with
// "<container>/azconcsession/"; the service does not delete leased ones.
//
// Errors: why blobs cannot be listed or deleted; blobs deleted before the error are counted. Requests: 1 per 5000
// blobs, and 1 per blob deleted.
func (k *Sessions) GC(ctx context.Context) (deleted int, err error) {
	for pages := k.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: to.Ptr(sessionPrefix)}); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return deleted, fmt.Errorf("list %s: %w", k.path, azerr.Clean(err))
		}
		before := cmp.Or(deref(page.Date), time.Now()).Add(-sessionAge) // by the clock of the blobs' timestamps
		for _, b := range page.Segment.BlobItems {
			if b.Properties.LastModified == nil || !b.Properties.LastModified.Before(before) || !lease.State(deref(b.Properties.LeaseState)).Free() {
				continue
			}
			_, err := k.container.NewBlobClient(deref(b.Name)).Delete(ctx, nil)
			switch out := azerr.Classify(err); {
			case err == nil:
				deleted++
			case out.Kind == azerr.NotFound, out.Kind == azerr.Held:
			default:
				return deleted, fmt.Errorf("delete %s/%s: %w", k.path, deref(b.Name), azerr.Clean(err))
			}
		}
	}
	return deleted, nil
}

func (o *ConsumerOptions) checkSessions() error {
	if o.Sessions != nil && o.Dedupe != DedupeOwner && o.Dedupe != DedupeComplete {
		return fmt.Errorf("ConsumerOptions.Sessions: they need Markers, with %s or %s, and not %s", DedupeOwner, DedupeComplete, o.Dedupe)
	}
	return nil
}

// errOverdue reports that patience with a session has ended.
var errOverdue = errors.New("it has neither finished the message nor given it back, and is not waited for any longer")
