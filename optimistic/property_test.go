package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// ledger is content that shows how many times each operation was applied: every writer has an element of its own and
// numbers its operations. A change that finds its own number is about to be applied a second time.
type ledger struct {
	Last  []int `json:"last"`  // the last operation applied, by writer
	Twice int   `json:"twice"` // changes that were applied more than once
}

// workload runs writers against one service with many faults, and checks every operation.
type workload struct {
	seed       uint64
	blobs      int
	writers    int // per blob
	operations int // per writer
	wipes      bool
	noLineage  bool
	confirm    optimistic.Confirm
	faults     []aztest.Fault // defaults to some of each kind
}

func (w workload) run(t *testing.T) (v optest.Verdicts) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(w.seed, 1))
		s := aztest.New(&aztest.Options{Seed: w.seed, Latency: func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(1+rng.IntN(9_000_000)) * time.Nanosecond
		}})
		commit := func(r *aztest.Request) bool { return r.Op == "Put Blob" && r.Header.Get("X-Ms-Meta-Foreign") == "" }
		faults := []aztest.Fault{
			{Kind: aztest.LoseAnswer, Match: commit, Probability: 0.04},
			{Kind: aztest.FailAfterCommit, Match: commit, Probability: 0.02},
			{Kind: aztest.LoseRequest, Match: commit, Probability: 0.02},
			{Kind: aztest.DelayCommit, Match: commit, Probability: 0.02, Delay: 300 * time.Millisecond},
			{Kind: aztest.Throttle, Match: commit, Probability: 0.01, RetryAfter: time.Second},
			{Kind: aztest.AnswerTwice, Match: commit, Probability: 0.02},
		}
		if w.faults != nil {
			faults = w.faults
		}
		var wg, foreign sync.WaitGroup
		stop := make(chan struct{})
		for b := range w.blobs {
			name := fmt.Sprintf("ledger-%d.json", b)
			client := s.BlockBlob("box", name)
			if _, err := optimistic.Create(t.Context(), blobs.NewJSON[ledger](client), ledger{Last: make([]int, w.writers)}, nil); err != nil {
				t.Fatal(err)
			}
			if w.wipes {
				foreign.Go(func() { wipe(t, s.BlockBlob("box", name), stop) })
			}
			for i := range w.writers {
				wg.Go(func() {
					got := w.writer(s.BlockBlob("box", name), i)
					mu.Lock()
					defer mu.Unlock()
					v.Operations += got.Operations
					v.Success += got.Success
					v.Conflict += got.Conflict
					v.Unknown += got.Unknown
					v.Violations = append(v.Violations, got.Violations...)
				})
			}
		}
		s.SetFaults(faults...)
		wg.Wait()
		close(stop)
		foreign.Wait()
		s.SetFaults()
		s.Flush() // delayed requests must not be applied now, unless their outcome is unknown
		for b := range w.blobs {
			final, err := optimistic.Read(t.Context(), blobs.NewJSON[ledger](s.BlockBlob("box", fmt.Sprintf("ledger-%d.json", b))), nil)
			if err != nil {
				t.Fatal(err)
			}
			if final.Value.Twice > 0 {
				v.Violations = append(v.Violations, fmt.Sprintf("%d changes were applied twice", final.Value.Twice))
			}
		}
	})
	return v
}

// writer applies its operations one after the other, and judges each by what the next one finds.
func (w workload) writer(client *blockblob.Client, me int) (v optest.Verdicts) {
	ctx := context.Background()
	target := blobs.NewJSON[ledger](client)
	o := &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1, SendOptions: optimistic.SendOptions{ConfirmConflicts: w.confirm}}
	if w.noLineage {
		o.NoLineage = true
	}
	applied, open := 0, 0 // the last operation known to be applied, and one that may be
	for n := 1; n <= w.operations; n++ {
		tight := *o
		if n%7 == 0 {
			tight.Attempts = 1 // so that conflicts reach the caller, too
		}
		complain := func(format string, args ...any) {
			v.Violations = append(v.Violations, fmt.Sprintf("writer %d, operation %d: %s", me, n, fmt.Sprintf(format, args...)))
		}
		var found int
		_, err := optimistic.Update(ctx, target, func(_ context.Context, l *ledger) error {
			if found = l.Last[me]; found == n {
				l.Twice++
			}
			l.Last[me] = n
			return nil
		}, &tight)
		v.Operations++
		if found != applied && (open == 0 || found != open) && found != n {
			complain("found %d applied last, want %d (or %d)", found, applied, open)
		}
		if found == open && open != 0 {
			applied = open
		}
		open = 0
		switch {
		case err == nil:
			v.Success++
			applied = n
		case errors.Is(err, optimistic.ErrOutcomeUnknown):
			v.Unknown++
			open = n
			if w.noLineage {
				// Carry on as a caller does who takes every conflict for a conflict.
				n--
			}
		case errors.Is(err, optimistic.ErrConflict):
			v.Conflict++
		default:
			complain("%v", err)
		}
	}
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

// TestNoOperationIsAppliedTwice is the promise of the package as a property: a hundred thousand operations of 32
// writers under lost responses, delayed commits, duplicates and foreign writers that wipe the lineage. Applied at most
// once always; success means once; conflict means not at all; only unknown may be either.
func TestNoOperationIsAppliedTwice(t *testing.T) {
	var all optest.Verdicts
	seeds, each := uint64(5), 800/optest.RaceScale
	if testing.Short() {
		seeds, each = 2, min(each, 100)
	}
	for n := range seeds {
		seed := *optest.FirstSeed + n
		v := workload{seed: seed, blobs: 8, writers: 4, operations: each, wipes: n > 0, confirm: optimistic.ConfirmAlways}.run(t)
		for _, violation := range v.Violations {
			t.Errorf("seed %d: %s", seed, violation)
		}
		all.Operations += v.Operations
		all.Success += v.Success
		all.Conflict += v.Conflict
		all.Unknown += v.Unknown
	}
	t.Logf("%d operations: %d applied, %d conflicts, %d unknown", all.Operations, all.Success, all.Conflict, all.Unknown)
	if all.Operations != int(seeds)*8*4*each {
		t.Errorf("only %d operations", all.Operations)
	}
	if all.Conflict == 0 || all.Unknown == 0 {
		t.Error("the workload is too tame: no conflict or nothing unknown")
	}
	if all.Unknown > all.Operations/50 {
		t.Errorf("%d of %d are unknown: the lineage proves too little", all.Unknown, all.Operations)
	}
}

// TestThePropertyConvictsALoopWithoutLineage switches the lineage off and does what loops without one do: a lost
// response followed by a conflict is taken for a conflict.
func TestThePropertyConvictsALoopWithoutLineage(t *testing.T) {
	v := workload{seed: 1, blobs: 2, writers: 4, operations: 200 / min(optest.RaceScale, 4), noLineage: true}.run(t)
	if len(v.Violations) == 0 {
		t.Errorf("%d operations without a lineage, %d unknown: nothing was found", v.Operations, v.Unknown)
	}
}
