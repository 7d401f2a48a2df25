package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

func first(numbers []int) { numbers[0]++ }

func TestEveryTargetCostsTheDocumentedRequests(t *testing.T) {
	for _, site := range sites {
		t.Run(site.name, func(t *testing.T) {
			r := site.make(t, aztest.New(nil))
			for i := range 3 {
				r.Reset()
				res, err := r.update(t.Context(), first, nil)
				if err != nil || !res.Changed || res.Attempts != 1 {
					t.Fatalf("Update = %+v, %v\n%v", res, err, r.Log())
				}
				if res.Requests != site.requests || r.Requests() != site.requests {
					t.Errorf("reported %d requests, sent %d, want %d:\n%v", res.Requests, r.Requests(), site.requests, r.Log())
				}
				if got, err := r.read(t.Context()); err != nil || got[0] != i+1 {
					t.Errorf("n = %v, %v, want %d", got, err, i+1)
				}
			}
			r.Reset()
			res, err := r.update(t.Context(), func([]int) {}, nil)
			if err != nil || res.Changed || r.Requests() != 1 {
				t.Errorf("an update that changes nothing: %+v, %v, %d requests", res, err, r.Requests())
			}
		})
	}
}

// TestTurnsAndTenTagsUnderEveryFault: success means applied once, and only an unknown outcome may be either. Only a traceless write may
// end unknown. The test of internal/pairs has the other targets, and of these the faults of the write itself.
func TestTurnsAndTenTagsUnderEveryFault(t *testing.T) {
	for _, site := range sites {
		if !strings.HasPrefix(site.name, "container") && site.name != "tags, ten of them" {
			continue
		}
		for on, match := range map[string]func(*aztest.Request) bool{"any write": aztest.Writes, "the write": aztest.Op(site.Change)} {
			for name, fault := range optest.Every(match) {
				t.Run(site.name+"/"+on+"/"+name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := site.make(t, aztest.New(nil))
						r.SetFaults(fault)
						res, err := r.update(t.Context(), first, nil)
						r.SetFaults()
						r.Flush()
						got, readErr := r.read(t.Context())
						if readErr != nil {
							t.Fatal(readErr)
						}
						twice := fault.Kind == aztest.AnswerTwice && site.traceless
						switch {
						case errors.Is(err, optimistic.ErrOutcomeUnknown) && site.traceless && got[0] <= 1:
						case err != nil:
							t.Errorf("err = %v\n%v", err, r.Log())
						case got[0] != 1 && !twice:
							t.Errorf("applied %d times: %+v\n%v", got[0], res, r.Log())
						}
					})
				})
			}
		}
	}
}

// TestNoTargetAppliesAnOperationTwice is the promise as a property, for each target that makes it: writers with a number
// of their own each count in it, under lost responses and late requests, and judge every operation by what the next
// finds.
func TestNoTargetAppliesAnOperationTwice(t *testing.T) {
	for _, site := range sites {
		if site.lastWins {
			continue
		}
		t.Run(site.name, func(t *testing.T) {
			operations, unknown, conflicts := 0, 0, 0
			for seed := range int64(3) {
				synctest.Test(t, func(t *testing.T) {
					r := site.make(t, aztest.New(&aztest.Options{Seed: uint64(seed), Latency: optest.Latencies(seed)}))
					match := aztest.Op(site.Change)
					faults := []aztest.Fault{
						{Kind: aztest.LoseAnswer, Match: match, Probability: 0.05},
						{Kind: aztest.FailAfterCommit, Match: match, Probability: 0.03},
						{Kind: aztest.LoseRequest, Match: match, Probability: 0.03},
						{Kind: aztest.DelayCommit, Match: match, Probability: 0.03, Delay: 300 * time.Millisecond},
						{Kind: aztest.Throttle, Match: match, Probability: 0.01, RetryAfter: time.Second},
					}
					if !site.traceless {
						faults = append(faults, aztest.Fault{Kind: aztest.AnswerTwice, Match: match, Probability: 0.03})
					}
					r.SetFaults(faults...)
					var mu sync.Mutex
					var wg sync.WaitGroup
					for me := range slots {
						wg.Go(func() {
							v := r.countOn(me, 60)
							mu.Lock()
							defer mu.Unlock()
							operations, unknown, conflicts = operations+v.Operations, unknown+v.Unknown, conflicts+v.Conflict
							for _, violation := range v.Violations {
								t.Errorf("seed %d: %s", seed, violation)
							}
						})
					}
					wg.Wait()
				})
			}
			t.Logf("%d operations, %d conflicts, %d unknown", operations, conflicts, unknown)
			if conflicts == 0 {
				t.Error("the workload is too tame: no conflict")
			}
			if !site.traceless && unknown > operations/20 {
				t.Errorf("%d of %d are unknown: the lineage proves too little", unknown, operations)
			}
			if site.traceless && site.Change != "Set Container ACL" && unknown == 0 {
				t.Error("nothing was unknown: a lost response cannot be resolved here, so something guesses")
			}
		})
	}
}

// countOn applies operations one after the other to one number.
func (r rig) countOn(me, operations int) (v optest.Verdicts) {
	ctx := context.Background()
	applied, open := 0, 0 // the last operation known to be applied, and one that may be
	for n := 1; n <= operations; n++ {
		// The waits are short, because tags and pages remember only 14 writes, and a duplicate can be recognized only
		// among those.
		o := &optimistic.UpdateOptions{
			Attempts: -1, Elapsed: -1, Backoff: retry.Backoff{Base: 5 * time.Millisecond, Cap: 40 * time.Millisecond},
			SendOptions: optimistic.SendOptions{Pause: retry.Backoff{Base: 10 * time.Millisecond, Cap: 50 * time.Millisecond}},
		}
		if n%5 == 0 {
			o.Attempts = 1 // so that conflicts reach the caller, too
		}
		complain := func(format string, args ...any) {
			v.Violations = append(v.Violations, fmt.Sprintf("writer %d, operation %d: %s", me, n, fmt.Sprintf(format, args...)))
		}
		found := 0
		res, err := r.update(ctx, func(numbers []int) {
			if found = numbers[me]; found == n {
				complain("is about to be applied twice")
			}
			numbers[me] = n
		}, o)
		v.Operations++
		v.Conflict += res.Conflicts
		if found != applied && (open == 0 || found != open) {
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
		case errors.Is(err, optimistic.ErrConflict):
		default:
			complain("%v", err)
		}
	}
	return v
}

// TestThePropertyConvictsATargetWithoutAGuard plants a bug.
func TestThePropertyConvictsATargetWithoutAGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: optest.Latencies(1)})
		optest.PutTagged(t, s.BlockBlob("box", "n.json"), map[string]string{optimistic.LineageKey: "-"})
		r := rigOf(s, func() optimistic.Target[map[string]string] {
			return blobs.NewTags(unconditional(t, s).BlobClient())
		}, inMap, toMap)
		var mu sync.Mutex
		var wg sync.WaitGroup
		violations := 0
		for me := range slots {
			wg.Go(func() {
				v := r.countOn(me, 20)
				mu.Lock()
				defer mu.Unlock()
				violations += len(v.Violations)
			})
		}
		wg.Wait()
		if violations == 0 {
			t.Error("lost updates were not noticed")
		}
	})
}
