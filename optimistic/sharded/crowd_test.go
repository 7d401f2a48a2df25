//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package sharded_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/aztest"
)

var crowds atomic.Int64

// crowd lets 64 processes, 5 ms away, change a counter of so many shards for 5 s, each with what change returns for it, and
// returns how many changes there are in a second, and how long 99 in 100 of them take at most. Each process of each crowd has a
// host of its own in its URLs: what a process has seen of a crowd is remembered by host, so none knows what another has seen.
func crowd(t *testing.T, shards int, change func(*testing.T, sharded.At) func(context.Context) error) (perSecond float64, p99 time.Duration) {
	const lasts = 5 * time.Second
	number := crowds.Add(1)
	synctest.Test(t, func(t *testing.T) {
		latency := optest.Latencies(int64(shards))
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 4*time.Millisecond + latency()/5 }})
		made(t, inBlobs(s), shards)
		key, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		var mu sync.Mutex // guards took
		var took []time.Duration
		var wg sync.WaitGroup
		for p := range 64 {
			once := change(t, func(name string) optimistic.Target[sharded.Part] {
				client, err := blockblob.NewClientWithSharedKeyCredential(fmt.Sprintf("http://process%d-of-crowd%d/%s/box/%s", p, number, aztest.Account, name), key, &blockblob.ClientOptions{ClientOptions: s.ClientOptions()})
				if err != nil {
					t.Error(err)
				}
				return blobs.NewJSON[sharded.Part](client)
			})
			wg.Go(func() {
				for ctx.Err() == nil {
					began := time.Now()
					if err := once(ctx); err != nil && ctx.Err() == nil {
						continue // the time left was too short for another turn
					}
					mu.Lock()
					took = append(took, time.Since(began)) // also of the last one, which waited in vain
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		slices.Sort(took)
		perSecond, p99 = float64(len(took))/lasts.Seconds(), took[len(took)*99/100]
	})
	return perSecond, p99
}

// TestProcessesOnAShardTakeTurns: 64 processes on one shard needed 16.6 s for one addition in a hundred. Additions take turns as the
// crowd of an Update does, and shards divide the wait: four of them by two to three. The bound leaves room for the beginning, when no
// process knows of the others: in one run of twenty, the first additions of twenty or thirty of them take one to three seconds.
func TestProcessesOnAShardTakeTurns(t *testing.T) {
	add := func(t *testing.T, at sharded.At) func(context.Context) error {
		c := open(t, at)
		return func(ctx context.Context) error { _, err := c.Add(ctx, 1, nil); return err }
	}
	update := func(_ *testing.T, at sharded.At) func(context.Context) error {
		target := at("visits")
		return func(ctx context.Context) error {
			_, err := optimistic.Update(ctx, target, func(_ context.Context, p *sharded.Part) error { p.N++; return nil }, nil)
			return err
		}
	}
	rate, wait := crowd(t, 1, update)
	t.Logf("updates: %.0f a second, p99 %v", rate, wait)
	for _, shards := range []int{1, 4} {
		if testing.Short() && shards == 1 {
			continue // two seconds
		}
		got, p99 := crowd(t, shards, add)
		t.Logf("additions to %d shards: %.0f a second, p99 %v", shards, got, p99)
		if got < 0.7*float64(shards)*rate || p99 > wait*4 {
			t.Errorf("%d shards take %.0f additions a second, and one in a hundred takes more than %v; an Update's crowd has %.0f and %v", shards, got, p99, rate, wait)
		}
	}
}
