package optimistic_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
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
			optest.UnderEvery(t, site.name+"/"+on, match, func(t *testing.T, _ string, fault aztest.Fault) {
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
		}
	}
}

// property has writers that each count in a number of their own.
func (r rig) property(t *testing.T, each int, faults ...aztest.Fault) optest.Verdicts {
	p := optest.Property{Service: r.Service, Faults: faults, Each: each, OneTry: 5}
	var conflicts atomic.Int64 // also those that an update deals with itself
	for me := range slots {
		p.Writers = append(p.Writers, func(n, attempts int) (found int, err error) {
			res, err := r.update(t.Context(), func(numbers []int) {
				found, numbers[me] = numbers[me], n
			}, &optimistic.UpdateOptions{
				// The waits are short, because tags and pages remember only 14 writes, and a duplicate can be recognized only
				// among those.
				Attempts: attempts, Elapsed: -1, Backoff: retry.Backoff{Base: 5 * time.Millisecond, Cap: 40 * time.Millisecond},
				SendOptions: optimistic.SendOptions{Pause: retry.Backoff{Base: 10 * time.Millisecond, Cap: 50 * time.Millisecond}},
			})
			conflicts.Add(int64(res.Conflicts))
			return found, err
		})
	}
	v := p.Run()
	v.Conflict = int(conflicts.Load())
	return v
}

// TestNoTargetAppliesAnOperationTwice is the promise as a property, for each target that makes it.
func TestNoTargetAppliesAnOperationTwice(t *testing.T) {
	for _, site := range sites {
		if site.lastWins {
			continue
		}
		t.Run(site.name, func(t *testing.T) {
			seeds := 2
			if testing.Short() {
				seeds = 1
			}
			v := optest.Holds(t, seeds, func(t *testing.T, seed uint64) optest.Verdicts {
				faults := optest.Unreliable(aztest.Op(site.Change))
				if site.traceless {
					faults = slices.DeleteFunc(faults, func(f aztest.Fault) bool { return f.Kind == aztest.AnswerTwice })
				}
				return site.make(t, aztest.New(&aztest.Options{Seed: seed, Latency: optest.Latencies(int64(seed))})).property(t, 60/min(optest.RaceScale, 4), faults...)
			})
			if v.Conflict == 0 {
				t.Error("the workload is too tame: no conflict")
			}
			if !site.traceless && v.Unknown > v.Operations/20 {
				t.Errorf("%d of %d are unknown: the lineage proves too little", v.Unknown, v.Operations)
			}
			if site.traceless && site.Change != "Set Container ACL" && v.Unknown == 0 {
				t.Error("nothing was unknown: a lost response cannot be resolved here, so something guesses")
			}
		})
	}
}

// TestThePropertyConvictsATargetWithoutAGuard plants a bug.
func TestThePropertyConvictsATargetWithoutAGuard(t *testing.T) {
	optest.Convicts(t, func(t *testing.T, seed uint64) optest.Verdicts {
		s := aztest.New(&aztest.Options{Latency: optest.Latencies(int64(seed))})
		optest.PutTagged(t, s.BlockBlob("box", "n.json"), map[string]string{optimistic.LineageKey: "-"})
		return rigOf(s, func() optimistic.Target[map[string]string] {
			return blobs.NewTags(unconditional(t, s).BlobClient())
		}, inMap, toMap).property(t, 20)
	})
}
