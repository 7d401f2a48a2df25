//go:build unix && !race

package root

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/rights"
	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/aztest"
)

type counted struct{ N int }

// goCalls are calls in Go, with the verbs whose rights they need.
var goCalls = []struct {
	name, verb string
	call       func(ctx context.Context, jobs *container.Client, rows *aztables.ServiceClient) error
}{
	{"Create", "blob put --if-none-match '*'", func(ctx context.Context, jobs *container.Client, _ *aztables.ServiceClient) error {
		_, err := optimistic.Create(ctx, blobs.NewJSON[counted](jobs.NewBlockBlobClient("new")), counted{}, nil)
		return err
	}},
	{"Update", "blob update", func(ctx context.Context, jobs *container.Client, _ *aztables.ServiceClient) error {
		_, err := optimistic.Update(ctx, blobs.NewJSON[counted](jobs.NewBlockBlobClient("a")), func(_ context.Context, v *counted) error { v.N++; return nil }, nil)
		return err
	}},
	{"Update of an entity", "table update", func(ctx context.Context, _ *container.Client, rows *aztables.ServiceClient) error {
		on := tables.NewEntity[counted](rows.NewClient("jobs"), "eu", "1")
		_, err := optimistic.Update(ctx, on, func(_ context.Context, v *counted) error { v.N++; return nil }, nil)
		return err
	}},
	{"Counter.Add", "counter add", func(ctx context.Context, jobs *container.Client, _ *aztables.ServiceClient) error {
		c, err := sharded.NewCounter("visits", func(name string) optimistic.Target[sharded.Part] {
			return blobs.NewJSON[sharded.Part](jobs.NewBlockBlobClient(name))
		}, nil)
		if err == nil {
			_, err = c.Add(ctx, 1, nil)
		}
		return err
	}},
	{"Locker.Do", "lock run", func(ctx context.Context, jobs *container.Client, _ *aztables.ServiceClient) error {
		k, err := pessimistic.NewLocker(jobs, nil)
		if err != nil {
			return err
		}
		return k.Do(ctx, "nightly", nil, func(context.Context, *pessimistic.Hold) error { return nil })
	}},
	{"Locker.GC", "lock gc", func(ctx context.Context, jobs *container.Client, _ *aztables.ServiceClient) error {
		k, err := pessimistic.NewLocker(jobs, nil)
		if err == nil {
			_, err = k.GC(ctx, nil)
		}
		return err
	}},
	{"Semaphore.Do", "semaphore run", func(ctx context.Context, jobs *container.Client, _ *aztables.ServiceClient) error {
		k, err := pessimistic.NewLocker(jobs, nil)
		if err != nil {
			return err
		}
		s, err := shared.NewSemaphore(k, "pool", 2)
		if err != nil {
			return err
		}
		return s.Do(ctx, nil, func(context.Context, *shared.Slot) error { return nil })
	}},
	{"Once.Do", "once run", func(ctx context.Context, jobs *container.Client, rows *aztables.ServiceClient) error {
		k, err := pessimistic.NewLocker(jobs, nil)
		if err != nil {
			return err
		}
		o, err := once.New(k, rows.NewClient("azconconce"), nil)
		if err == nil {
			_, err = o.Do(ctx, "order-1", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { return nil, nil })
		}
		return err
	}},
}

func TestEachGoCallNeedsTheRightsOfItsVerb(t *testing.T) {
	for _, c := range goCalls {
		synctest.Test(t, func(t *testing.T) {
			needs := rights.Of(c.verb)
			if len(needs) == 0 {
				t.Fatal("the table of rights has no", c.verb)
			}
			wire, _ := prepared(t, rightsRow{}).limit(t, needs)
			o := azcore.ClientOptions{Transport: wire, Retry: policy.RetryOptions{MaxRetries: -1}}
			jobs, err := container.NewClientWithNoCredential("http://127.0.0.1:10000/"+aztest.Account+"/jobs", &container.ClientOptions{ClientOptions: o})
			if err != nil {
				t.Fatal(err)
			}
			rows, err := aztables.NewServiceClientWithNoCredential("http://127.0.0.1:10002/"+aztest.Account, &aztables.ClientOptions{ClientOptions: o})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.call(t.Context(), jobs, rows); err != nil {
				t.Errorf("%s with the rights of %s: %v", c.name, c.verb, err)
			}
		})
	}
}
