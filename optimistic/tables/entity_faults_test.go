package tables

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/history"
)

// entityWrites are the single writes of an entity; see writes. All lead from n = 0 (or absence) to one application.
var entityWrites = []struct {
	name      string
	run       func(ctx context.Context, client *aztables.Client) (optimistic.Result, error)
	applied   func(t *testing.T, client *aztables.Client) int
	traceless bool
}{
	{name: "merge",
		run: func(ctx context.Context, client *aztables.Client) (optimistic.Result, error) {
			return optimistic.Update(ctx, NewEntity[optest.Counter](client, "p", "r"), optest.Increment, nil)
		},
		applied: func(t *testing.T, client *aztables.Client) int { return optest.Number(t, client, "r") },
	},
	{name: "replace",
		run: func(ctx context.Context, client *aztables.Client) (optimistic.Result, error) {
			target := NewEntity[optest.Counter](client, "p", "r")
			target.Mode = ReplaceWhole
			return optimistic.Update(ctx, target, optest.Increment, nil)
		},
		applied: func(t *testing.T, client *aztables.Client) int { return optest.Number(t, client, "r") },
	},
	{name: "insert",
		run: func(ctx context.Context, client *aztables.Client) (optimistic.Result, error) {
			return optimistic.Create(ctx, NewEntity[optest.Counter](client, "p", "new"), optest.Counter{N: 1}, &optimistic.WriteOptions{SendOptions: optest.Recreate})
		},
		applied: func(t *testing.T, client *aztables.Client) int { return max(0, optest.Number(t, client, "new")) },
	},
	{name: "delete", traceless: true,
		run: func(ctx context.Context, client *aztables.Client) (optimistic.Result, error) {
			target := NewEntity[optest.Counter](client, "p", "r")
			v, err := optimistic.Read(ctx, target, nil)
			if err != nil {
				return optimistic.Result{}, err
			}
			return optimistic.Delete(ctx, target, v.State, nil)
		},
		applied: rowGone,
	},
	{name: "delete whatever is there", traceless: true,
		run: func(ctx context.Context, client *aztables.Client) (optimistic.Result, error) {
			return optimistic.Delete(ctx, NewEntity[optest.Counter](client, "p", "r"), optimistic.State{}, nil)
		},
		applied: rowGone,
	},
}

func rowGone(t *testing.T, client *aztables.Client) int {
	if optest.Number(t, client, "r") == -1 {
		return 1
	}
	return 0
}

// TestEveryEntityWriteUnderEveryFault: success means applied once, a conflict not at all, and only an unknown outcome may
// be either. An insert whose response was lost is not reported that the entity exists.
func TestEveryEntityWriteUnderEveryFault(t *testing.T) {
	for _, write := range entityWrites {
		for name, fault := range optest.Every(aztest.Writes) {
			t.Run(write.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, client := optest.Row(t, `{"n":0}`)
					s.SetFaults(fault)
					res, err := write.run(t.Context(), client)
					s.SetFaults()
					s.Flush()
					if got := write.applied(t, client); got != 1 {
						t.Errorf("applied %d times\n%v", got, s.Log())
					}
					switch {
					case err == nil:
						if write.traceless {
							return
						}
						if _, state := stored(t, client, map[bool]string{true: "new", false: "r"}[write.name == "insert"]); res.ETag != state.ETag && (res.Resolved == 0 || res.ETag != "") {
							t.Errorf("ETag %s, the entity has %s", res.ETag, state.ETag)
						}
					case !write.traceless, !errors.Is(err, optimistic.ErrOutcomeUnknown) && name != "delivered twice":
						t.Errorf("%+v, %v\n%v", res, err, s.Log())
					}
				})
			})
		}
	}
}

func TestAnInsertAfterAnotherInsertIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Row(t, `{"n":5}`)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Insert Entity"), Count: 1})
		_, err := optimistic.Create(t.Context(), NewEntity[optest.Counter](client, "p", "r"), optest.Counter{N: 1}, nil)
		// The other one left no lineage, so nothing proves that ours did not come first and was replaced.
		if !errors.Is(err, optimistic.ErrOutcomeUnknown) || optest.Number(t, client, "r") != 5 {
			t.Errorf("after a foreign insert: %v", err)
		}
		target := NewEntity[optest.Counter](client, "p", "azconc")
		if _, err := optimistic.Create(t.Context(), target, optest.Counter{N: 5}, nil); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Insert Entity"), Count: 1})
		if res, err := optimistic.Create(t.Context(), target, optest.Counter{N: 1}, nil); !errors.Is(err, optimistic.ErrExists) || res.Resolved != 1 {
			t.Errorf("after an insert by azconc: %+v, %v", res, err)
		}
	})
}

// TestASuccessWithoutAnETagIsResolvedByALook: the next write would otherwise go without a condition.
func TestASuccessWithoutAnETagIsResolvedByALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := optest.Row(t, `{"n":0}`)
		client := tableVia(t, s, "orders", dropETag{})
		res, err := optimistic.Update(t.Context(), NewEntity[optest.Counter](client, "p", "r"), optest.Increment, nil)
		if _, state := stored(t, s.Table("orders"), "r"); err != nil || res.ETag != "" || res.Resolved != 1 || optest.Number(t, s.Table("orders"), "r") != 1 {
			t.Errorf("Update = %+v, %v; the entity is at %s", res, err, state.ETag)
		}
	})
}

// entityWorkload is the property of workload for entities: each writer numbers its operations in a property of its own.
type entityWorkload struct {
	seed              uint64
	rows, writers     int // writers per row
	operations        int // per writer
	noLineage, merges bool
}

func (w entityWorkload) run(t *testing.T) (v optest.Verdicts) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(w.seed, 11))
		s := aztest.New(&aztest.Options{Seed: w.seed, Latency: func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(1+rng.IntN(9_000_000)) * time.Nanosecond
		}})
		for r := range w.rows {
			if _, err := optimistic.Create(t.Context(), NewEntity[map[string]int](s.Table("ledger"), "p", fmt.Sprint(r)), map[string]int{"twice": 0}, nil); err != nil {
				t.Fatal(err)
			}
		}
		s.SetFaults(tableFaults(aztest.Op("Merge Entity", "Update Entity"))...)
		var wg sync.WaitGroup
		for r := range w.rows {
			for i := range w.writers {
				wg.Go(func() {
					target := NewEntity[map[string]int](s.Table("ledger"), "p", fmt.Sprint(r))
					if !w.merges {
						target.Mode = ReplaceWhole
					}
					got := w.writer(target, fmt.Sprint("w", i))
					mu.Lock()
					defer mu.Unlock()
					v.Add(got)
				})
			}
		}
		wg.Wait()
		s.SetFaults()
		s.Flush()
		for r := range w.rows {
			final, err := optimistic.Read(t.Context(), NewEntity[map[string]int](s.Table("ledger"), "p", fmt.Sprint(r)), nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := final.Value["twice"]; n > 0 {
				v.Violations = append(v.Violations, fmt.Sprintf("row %d: %d changes were applied twice", r, n))
			}
		}
	})
	return v
}

func tableFaults(commit func(*aztest.Request) bool) []aztest.Fault {
	return []aztest.Fault{
		{Kind: aztest.LoseAnswer, Match: commit, Probability: 0.04},
		{Kind: aztest.FailAfterCommit, Match: commit, Probability: 0.02},
		{Kind: aztest.LoseRequest, Match: commit, Probability: 0.02},
		{Kind: aztest.DelayCommit, Match: commit, Probability: 0.02, Delay: 300 * time.Millisecond},
		{Kind: aztest.Throttle, Match: commit, Probability: 0.01, RetryAfter: time.Second},
		{Kind: aztest.AnswerTwice, Match: commit, Probability: 0.02},
	}
}

// writer judges each of its operations by what the next one finds.
func (w entityWorkload) writer(target Entity[map[string]int], me string) (v optest.Verdicts) {
	applied, open := 0, 0
	for n := 1; n <= w.operations; n++ {
		opts := &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1}
		if n%7 == 0 {
			opts.Attempts = 1 // so that conflicts reach the caller, too
		}
		if w.noLineage {
			opts.NoLineage = true
		}
		found := 0
		_, err := optimistic.Update(context.Background(), target, func(_ context.Context, m *map[string]int) error {
			if found = (*m)[me]; found == n {
				(*m)["twice"]++
			}
			(*m)[me] = n
			return nil
		}, opts)
		v.Operations++
		if found != applied && (open == 0 || found != open) && found != n {
			v.Violations = append(v.Violations, fmt.Sprintf("%s, operation %d: found %d applied last, want %d (or %d)", me, n, found, applied, open))
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
				n-- // as a caller does who takes every conflict for a conflict
			}
		case errors.Is(err, optimistic.ErrConflict):
			v.Conflict++
		default:
			v.Violations = append(v.Violations, fmt.Sprintf("%s, operation %d: %v", me, n, err))
		}
	}
	return v
}

func TestNoEntityIsChangedTwice(t *testing.T) {
	var all optest.Verdicts
	each := 120 / min(optest.RaceScale, 6)
	if testing.Short() {
		each = min(each, 40)
	}
	for n := range uint64(2) {
		seed := *optest.FirstSeed + n
		v := entityWorkload{seed: seed, rows: 8, writers: 4, operations: each, merges: seed%2 == 0}.run(t)
		for _, violation := range v.Violations {
			t.Errorf("seed %d: %s", seed, violation)
		}
		all.Add(v)
	}
	t.Logf("%d operations: %d applied, %d conflicts, %d unknown", all.Operations, all.Success, all.Conflict, all.Unknown)
	if all.Conflict == 0 || all.Success < all.Operations*3/4 {
		t.Errorf("the workload is too tame, or too wild: %+v", all)
	}
}

func TestThePropertyOfEntitiesConvictsALoopWithoutLineage(t *testing.T) {
	if v := (entityWorkload{seed: 1, rows: 2, writers: 4, operations: 60, noLineage: true, merges: true}).run(t); len(v.Violations) == 0 {
		t.Errorf("%d operations without a lineage, %d unknown: nothing was found", v.Operations, v.Unknown)
	}
}

// entityHistory runs a few clients on one counter under faults. With dropIfMatch the condition is lost on the way.
func entityHistory(t *testing.T, seed uint64, dropIfMatch bool) []history.Call {
	var r optest.Recorder
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(seed, 13))
		s := aztest.New(&aztest.Options{Seed: seed, Latency: func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(1+rng.IntN(5_000_000)) * time.Nanosecond
		}})
		optest.Insert(t, s.Table("orders"), "r", `{"n":0}`)
		s.SetFaults(tableFaults(aztest.Op("Merge Entity"))...)
		var wg sync.WaitGroup
		for c := range 4 {
			wg.Go(func() {
				target := NewEntity[optest.Counter](s.Table("orders"), "p", "r")
				if dropIfMatch {
					target.Client = tableVia(t, s, "orders", optest.DropCondition{})
				}
				for n := range 8 {
					in := history.Call{Client: c, Kind: history.Add, Value: 1}
					if (n+c)%4 == 3 {
						in.Kind = history.Read
					}
					if err := r.Do(in, func() (int, error) {
						if in.Kind == history.Read {
							v, err := optimistic.Read(context.Background(), target, nil)
							if err != nil {
								return 0, err
							}
							return v.Value.N, nil
						}
						_, err := optimistic.Update(context.Background(), target, optest.Increment, &optimistic.UpdateOptions{Attempts: 6})
						return 0, err
					}); err != nil {
						t.Errorf("client %d: %v", c, err)
					}
				}
			})
		}
		wg.Wait()
		s.SetFaults()
		s.Flush()
		if err := r.Do(history.Call{Client: 99, Kind: history.Read}, func() (int, error) { return optest.Number(t, s.Table("orders"), "r"), nil }); err != nil {
			t.Error(err)
		}
	})
	return r.Calls
}

func TestHistoriesOfEntitiesAreLinearizable(t *testing.T) {
	for seed := range uint64(60) {
		if err := history.Linearizable(entityHistory(t, seed, false), optest.JudgeTime); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestTheJudgeConvictsAnEntityWithoutCondition(t *testing.T) {
	convicted := 0
	const histories = 10
	for seed := range uint64(histories) {
		if optest.Convicted(entityHistory(t, seed, true)) {
			convicted++
		}
	}
	if convicted < histories*8/10 {
		t.Errorf("%d of %d histories without If-Match were convicted", convicted, histories)
	}
}

// tableVia returns a client whose requests, each try of them, pass through p.
func tableVia(t *testing.T, s *aztest.Service, name string, p policy.Policy) *aztables.Client {
	t.Helper()
	credential, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	service, err := aztables.NewServiceClientWithSharedKey(s.TableURL(), credential, &aztables.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: s, PerRetryPolicies: []policy.Policy{p},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return service.NewClient(name)
}

// dropETag is a proxy that does not pass on the ETags of writes.
type dropETag struct{}

func (dropETag) Do(r *policy.Request) (*http.Response, error) {
	response, err := r.Next()
	if err == nil && r.Raw().Method != http.MethodGet {
		response.Header.Del("ETag")
	}
	return response, err
}
