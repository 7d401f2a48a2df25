package optimistic_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// workload runs writers against one service with many faults. A blob has an element for each writer, with the last operation that it
// applied.
type workload struct {
	blobs      int
	writers    int // per blob
	operations int // per writer
	wipes      bool
	noLineage  bool
	confirm    optimistic.Confirm
	faults     []aztest.Fault // defaults to optest.Unreliable
}

func (w workload) play(t *testing.T, seed uint64) optest.Verdicts {
	s := aztest.New(&aztest.Options{Seed: seed, Latency: optest.Latencies(int64(seed))})
	p := optest.Property{Service: s, Faults: w.faults, Each: w.operations, OneTry: 7, Naive: w.noLineage}
	if p.Faults == nil {
		p.Faults = optest.Unreliable(func(r *aztest.Request) bool { return r.Op == "Put Blob" && r.Header.Get("X-Ms-Meta-Foreign") == "" })
	}
	var foreign sync.WaitGroup
	stop := make(chan struct{})
	for b := range w.blobs {
		name := fmt.Sprintf("ledger-%d.json", b)
		if _, err := optimistic.Create(t.Context(), blobs.NewJSON[[]int](s.BlockBlob("box", name)), make([]int, w.writers), nil); err != nil {
			t.Fatal(err)
		}
		if w.wipes {
			foreign.Go(func() { wipe(t, s.BlockBlob("box", name), stop) })
		}
		for me := range w.writers {
			target := blobs.NewJSON[[]int](s.BlockBlob("box", name))
			p.Writers = append(p.Writers, func(n, attempts int) (found int, err error) {
				_, err = optimistic.Update(t.Context(), target, func(_ context.Context, last *[]int) error {
					found, (*last)[me] = (*last)[me], n
					return nil
				}, &optimistic.UpdateOptions{Attempts: attempts, Elapsed: -1, SendOptions: optimistic.SendOptions{NoLineage: w.noLineage, ConfirmConflicts: w.confirm}})
				return found, err
			})
		}
	}
	v := p.Run()
	close(stop)
	foreign.Wait()
	return v
}

// wipe is a foreign writer that keeps the content and replaces all metadata, now and then.
func wipe(t *testing.T, client *blockblob.Client, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(700 * time.Millisecond):
		}
		resp, err := client.DownloadStream(context.Background(), nil)
		if err != nil {
			continue
		}
		content, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		resp.Body.Close()
		_, _ = client.Upload(context.Background(), optest.Body(string(content)), &blockblob.UploadOptions{
			Metadata:         map[string]*string{"foreign": new("yes")},
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: resp.ETag}},
		})
	}
}

// TestNoOperationIsAppliedTwice is the promise of the package as a property: 25,000 operations of 32
// writers under lost responses, delayed commits, duplicates and foreign writers that wipe the lineage. Applied at most
// once always; success means once; conflict means not at all; only unknown may be either.
func TestNoOperationIsAppliedTwice(t *testing.T) {
	seeds, each := 5, 160
	if testing.Short() {
		seeds, each = 2, 20/min(optest.RaceScale, 2)
	}
	all := optest.Holds(t, seeds, func(t *testing.T, seed uint64) optest.Verdicts {
		return workload{blobs: 8, writers: 4, operations: each, wipes: seed > *optest.FirstSeed, confirm: optimistic.ConfirmAlways}.play(t, seed)
	})
	if all.Operations != seeds*8*4*(each+1) {
		t.Errorf("only %d operations", all.Operations)
	}
	if all.Conflict == 0 || all.Unknown == 0 {
		t.Error("the workload is too tame: no conflict or nothing unknown")
	}
	if all.Unknown > all.Operations/33 { // 1.4 %, and 0.2 more or less in a short run with the race detector
		t.Errorf("%d of %d are unknown: the lineage proves too little", all.Unknown, all.Operations)
	}
}

// TestThePropertyConvictsALoopWithoutLineage switches the lineage off and does what loops without one do: a lost
// response followed by a conflict is taken for a conflict.
func TestThePropertyConvictsALoopWithoutLineage(t *testing.T) {
	optest.Convicts(t, workload{blobs: 2, writers: 4, operations: 200 / min(optest.RaceScale, 4), noLineage: true}.play)
}
