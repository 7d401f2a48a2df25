package idempotent

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/idempotent/internal/session"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

// SessionInfo is a session as List finds it.
type SessionInfo struct {
	Name  string    // of its blob, "azconcsession/…"
	Alive bool      // its lease is held; a session begins, and ends, with a moment in which it is not
	Owner string    // "host/process id" of the Consumer
	Since time.Time // when its blob was created, by the service's clock
}

// List returns the sessions whose blobs exist, in the order of their names. Those of Consumers that have crashed stay until GC
// deletes them, and are not Alive once their lease has expired. It describes the moment when the service answered: use it for
// display. Errors: why blobs cannot be listed. Requests: 1 per 5000 sessions, retried after transient faults.
func (k *Sessions) List(ctx context.Context) (found []SessionInfo, err error) {
	options := &container.ListBlobsFlatOptions{Prefix: to.Ptr(session.Prefix), Include: container.ListBlobsInclude{Metadata: true}}
	for pages := k.container.NewListBlobsFlatPager(options); pages.More(); {
		page, err := send.Page(ctx, wire.Observed(k.o.Hooks, k.path, nil), "List Blobs", pages.NextPage)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", k.path, azerr.Clean(err))
		}
		for _, b := range page.Segment.BlobItems {
			s := SessionInfo{Name: ptr.Value(b.Name)}
			if p := b.Properties; p != nil {
				s.Alive, s.Since = !lease.State(ptr.Value(p.LeaseState)).Free(), ptr.Value(p.LastModified)
			}
			for name, value := range b.Metadata {
				if strings.EqualFold(name, session.OwnerKey) {
					s.Owner, _ = url.PathUnescape(ptr.Value(value))
				}
			}
			found = append(found, s)
		}
	}
	return found, nil
}
