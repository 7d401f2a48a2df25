//go:build !race

// Many requests in simulated time, each of which takes ten times as long with the race detector: scripts/test runs this file
// without it.

package optimistic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
)

// quiet is a day without faults.
type quiet struct {
	entity  bool
	clients int
	each    bool   // each update has a client of its own
	foreign string // a writer outside azconc that keeps the lineage or drops it
}

// run lets the clients make so many increments together, with the default options, and returns the number that ended in
// each outcome.
func (q quiet) run(t *testing.T, commits int) (ok, conflicts, unknown int) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: optest.Latencies(int64(q.clients))})
		optest.Put(t, s.BlockBlob("box", "n.json"), `{"n":0}`)
		table := s.Table("t")
		optest.Insert(t, table, "r", `{"n":0}`)
		open := func() optimistic.Target[optest.Counter] {
			if q.entity {
				return tables.NewEntity[optest.Counter](s.Table("t"), "p", "r")
			}
			return blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var outside, inside sync.WaitGroup
		added := 0
		if q.foreign != "" {
			outside.Go(func() {
				for ctx.Err() == nil {
					if q.entity && foreignEntity(t.Context(), table) || !q.entity && foreignBlob(t.Context(), s.BlockBlob("box", "n.json"), q.foreign == "keeps") {
						added++
					}
				}
			})
		}
		var mu sync.Mutex
		left := commits
		for range q.clients {
			inside.Go(func() {
				target := open()
				for {
					mu.Lock()
					left--
					done := left < 0
					mu.Unlock()
					if done {
						return
					}
					if q.each {
						target = open()
					}
					_, err := optimistic.Update(t.Context(), target, optest.Increment, nil)
					mu.Lock()
					switch {
					case err == nil:
						ok++
					case errors.Is(err, optimistic.ErrOutcomeUnknown):
						unknown++
					case errors.Is(err, optimistic.ErrConflict):
						conflicts++
					default:
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
		inside.Wait()
		stop()
		outside.Wait()
		v, err := optimistic.Read(t.Context(), open(), nil)
		if err != nil || v.Value.N != ok+added {
			t.Errorf("the counter is at %+v, %v after %d increments of azconc and %d others", v, err, ok, added)
		}
	})
	return ok, conflicts, unknown
}

// foreignBlob increments the counter as a plain program does that knows If-Match. It reports whether it succeeded.
func foreignBlob(ctx context.Context, client *blockblob.Client, keeps bool) bool {
	resp, err := client.DownloadStream(ctx, nil)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var c optest.Counter
	content, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(content, &c) != nil {
		return false
	}
	o := &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: resp.ETag}}}
	if keeps {
		o.Metadata = resp.Metadata
	}
	_, err = client.Upload(ctx, optest.Body(fmt.Sprintf(`{"n":%d}`, c.N+1)), o)
	return err == nil
}

// foreignEntity does the same to an entity, and replaces it, so that the lineage is dropped.
func foreignEntity(ctx context.Context, table *aztables.Client) bool {
	resp, err := table.GetEntity(ctx, "p", "r", nil)
	if err != nil {
		return false
	}
	var c optest.Counter
	if json.Unmarshal(resp.Value, &c) != nil {
		return false
	}
	etag := resp.ETag
	_, err = table.UpdateEntity(ctx, fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":"r","n":%d}`, c.N+1),
		&aztables.UpdateEntityOptions{IfMatch: &etag, UpdateMode: aztables.UpdateModeReplace})
	return err == nil
}

// TestAQuietDayLeavesNothingUnknown: without a fault every update ends in a success, among contending writers and beside writers that
// know nothing of azconc. -commits 10000 makes as many updates of each kind.
func TestAQuietDayLeavesNothingUnknown(t *testing.T) {
	for _, q := range []quiet{
		{clients: 8}, {clients: 32}, {clients: 128}, {entity: true, clients: 8}, {entity: true, clients: 32}, {entity: true, clients: 128},
		{clients: 8, each: true}, {clients: 32, each: true}, {clients: 128, each: true}, {entity: true, clients: 32, each: true},
		{clients: 4, foreign: "keeps"}, {clients: 8, foreign: "keeps"}, {clients: 4, foreign: "drops"}, {clients: 8, foreign: "drops"}, {entity: true, clients: 8, foreign: "drops"},
	} {
		t.Run(fmt.Sprintf("%+v", q), func(t *testing.T) {
			began := time.Now()
			commits := *crowdCommits
			if testing.Short() {
				if q.clients == 32 {
					t.Skip("SKIP: this is a short run, and there are smaller and larger crowds")
				}
				commits /= 4
			}
			ok, conflicts, unknown := q.run(t, commits)
			t.Logf("%d applied, %d conflicts, %d unknown (%v)", ok, conflicts, unknown, time.Since(began).Round(time.Millisecond))
			if unknown > 0 || conflicts > 0 {
				t.Errorf("%d unknown and %d conflicts of %d", unknown, conflicts, commits)
			}
		})
	}
}

// TestNothingIsAppliedTwiceInACrowd whose network delivers a tenth of the writes twice and loses a fifth of the
// responses. The lineage proves nearly all of them, so it makes no difference whether the path is trusted.
func TestNothingIsAppliedTwiceInACrowd(t *testing.T) {
	for _, tt := range []struct {
		clients int
		confirm optimistic.Confirm
	}{{12, optimistic.ConfirmAlways}, {32, optimistic.ConfirmAlways}, {128, optimistic.ConfirmAlways}, {32, optimistic.ConfirmByPath}} {
		t.Run(fmt.Sprintf("%d clients, confirm %d", tt.clients, tt.confirm), func(t *testing.T) {
			commits := *crowdCommits
			if testing.Short() {
				if tt.clients == 32 && tt.confirm == optimistic.ConfirmAlways {
					t.Skip("SKIP: this is a short run, and there are smaller and larger crowds")
				}
				commits /= 3
			}
			v := optest.Holds(t, 1, workload{
				blobs: 1, writers: tt.clients, operations: commits/tt.clients + 1, confirm: tt.confirm, faults: manyFaults(),
			}.play)
			if v.Unknown*100 > v.Operations {
				t.Errorf("%d of %d are unknown, want at most 1 %%", v.Unknown, v.Operations)
			}
		})
	}
}
