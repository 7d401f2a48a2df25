package soak

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/retry"
)

// later makes the service's clock look as if a year had passed, which is longer than the life of anything that the workload leaves.
type later struct{}

func (later) Do(r *policy.Request) (*http.Response, error) {
	resp, err := r.Next()
	if err == nil {
		if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			resp.Header.Set("Date", at.AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
		}
	}
	return resp, err
}

// leftovers judges that nothing has outlived its life: no lease, no lock that GC does not find.
func (s *soak) leftovers(ctx context.Context) error {
	// The leases of the process that was killed last end by themselves.
	if err := retry.Sleep(ctx, leaseTime-time.Since(s.killed)+2*time.Second); err != nil {
		return err
	}
	leases := s.say("no lease left")
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
	distant.calls = []policy.Policy{later{}}
	defer distant.close()
	for _, box := range []string{"locks", "turns", "onces"} {
		v := s.say("nothing left after its life in " + box)
		k, err := pessimistic.NewLocker(distant.container(box), nil)
		must(err)
		res, err := k.GC(ctx, nil)
		if err != nil {
			return err
		}
		v.judged = res.Deleted
		if err := eachBlob(ctx, s.site, box, func(b *container.BlobItem) { v.wrong("%s/%s is left", box, *b.Name) }); err != nil {
			return err
		}
	}
	return nil
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
