package optimistic_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
)

// TestALookComesBeforeAPauseThatOutlastsTheProof: while many writers contend, a second answer to the same write is lost. During the pause before
// the next request, the others write so often that the lineage no longer shows what became of the first one.
func TestALookComesBeforeAPauseThatOutlastsTheProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Seed: 1, Latency: optest.Latencies(1)})
		client := s.BlockBlob("box", "n.json")
		optest.Put(t, client, `{"n":0}`)
		counter := blobs.NewJSON[optest.Counter](client)
		ctx, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		for range 5 {
			others.Go(func() {
				for ctx.Err() == nil {
					_, _ = optimistic.Update(ctx, counter, optest.Increment, nil)
				}
			})
		}
		opts := &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{Pause: retry.Backoff{Base: 30 * time.Second, Cap: 30 * time.Second}}}
		for range 5 {
			bubble.Sleep(time.Second)
			s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 2, Match: func(r *aztest.Request) bool { return r.Op == "Put Blob" && r.Header.Get("X-Slow") != "" }})
			slow := policy.WithHTTPHeader(t.Context(), http.Header{"X-Slow": {"1"}})
			if res, err := optimistic.Update(slow, counter, optest.Increment, opts); err != nil {
				t.Errorf("%v, after %v", err, res.Elapsed)
			}
		}
		stop()
		others.Wait()
	})
}
