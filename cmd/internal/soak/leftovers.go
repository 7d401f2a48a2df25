package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/retry"
)

// later makes the service's clock look as if so much time had passed.
type later time.Duration

func (l later) Do(r *policy.Request) (*http.Response, error) {
	resp, err := r.Next()
	if err == nil {
		if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			resp.Header.Set("Date", at.Add(time.Duration(l)).UTC().Format(http.TimeFormat))
		}
	}
	return resp, err
}

// year is longer than the life of anything that the workload leaves.
const year = 365 * 24 * time.Hour

// leftovers judges that nothing has outlived its life: no lease, no session, no body, no lock that GC does not find, no
// marker without an end.
func (s *soak) leftovers(ctx context.Context, j *judgement) error {
	// The leases of the process that was killed last end by themselves.
	if err := retry.Sleep(ctx, leaseTime-time.Since(s.killed)+2*time.Second); err != nil {
		return err
	}
	leases := j.say("no lease left")
	for _, name := range boxes {
		if err := eachBlob(ctx, s.site, name, func(b *container.BlobItem) {
			leases.judged++
			if state := b.Properties.LeaseState; state != nil && (*state == lease.StateTypeLeased || *state == lease.StateTypeBreaking) {
				leases.wrong("%s/%s is leased", name, *b.Name)
			}
		}); err != nil {
			return err
		}
	}
	distant := newSite(s.site.account)
	distant.calls = []policy.Policy{later(year)}
	defer distant.close()
	var failed []error
	collect := func(what, box string, gc func() (int, error)) {
		v := j.say(what)
		n, err := gc()
		v.judged = n
		failed = append(failed, err, eachBlob(ctx, s.site, box, func(b *container.BlobItem) { v.wrong("%s/%s is left", box, *b.Name) }))
	}
	collect("no session left after its life", "sessions", func() (int, error) { return sessionsOf(distant).GC(ctx) })
	collect("no body left after its life", "bodies", func() (int, error) { return bodiesOf(distant).GC(ctx, time.Hour) })
	for _, box := range []string{"locks", "turns", "onces"} {
		collect("no lock left after its life in "+box, box, func() (int, error) {
			k, err := pessimistic.NewLocker(distant.container(box), nil)
			must(err)
			res, err := k.GC(ctx, nil)
			return res.Deleted, err
		})
	}
	failed = append(failed, s.markers(ctx, j.say("each marker has an end")))
	return errors.Join(failed...)
}

func eachBlob(ctx context.Context, s *site, name string, each func(*container.BlobItem)) error {
	for pages := s.container(name).NewListBlobsFlatPager(nil); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list %s: %w", name, err)
		}
		for _, b := range page.Segment.BlobItems {
			each(b)
		}
	}
	return nil
}

// markers judges that GC will find each marker.
func (s *soak) markers(ctx context.Context, v *verdict) error {
	for table, filter := range map[string]string{"markers": "", payments: "RowKey ge 'azconcinbox-' and RowKey lt 'azconcinbox.'"} {
		o := &aztables.ListEntitiesOptions{}
		if filter != "" {
			o.Filter = to.Ptr(filter)
		}
		for pages := s.site.table(table).NewListEntitiesPager(o); pages.More(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}
			for _, raw := range page.Entities {
				var e aztables.EDMEntity
				if err := e.UnmarshalJSON(raw); err != nil {
					return err
				}
				v.judged++
				at, ok := e.Properties["expires"].(aztables.EDMDateTime)
				if end := time.Time(at); !ok || end.Before(time.Now()) || end.After(time.Now().Add(year)) {
					v.wrong("%s/%s/%s ends at %v", table, e.PartitionKey, e.RowKey, e.Properties["expires"])
				}
			}
		}
	}
	return nil
}
