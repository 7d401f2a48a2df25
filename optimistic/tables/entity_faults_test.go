package tables

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

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
		optest.UnderEvery(t, write.name, aztest.Writes, func(t *testing.T, name string, fault aztest.Fault) {
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

// entityWorkload is workload for entities, which have a property for each writer.
type entityWorkload struct {
	rows, writers     int // writers per row
	operations        int // per writer
	noLineage, merges bool
}

func (w entityWorkload) play(t *testing.T, seed uint64) optest.Verdicts {
	s := aztest.New(&aztest.Options{Seed: seed, Latency: optest.Latencies(int64(seed))})
	p := optest.Property{Service: s, Faults: optest.Unreliable(aztest.Op("Merge Entity", "Update Entity")), Each: w.operations, OneTry: 7, Naive: w.noLineage}
	for r := range w.rows {
		if _, err := optimistic.Create(t.Context(), NewEntity[map[string]int](s.Table("ledger"), "p", fmt.Sprint(r)), map[string]int{}, nil); err != nil {
			t.Fatal(err)
		}
		for i := range w.writers {
			target, me := NewEntity[map[string]int](s.Table("ledger"), "p", fmt.Sprint(r)), fmt.Sprint("w", i)
			if !w.merges {
				target.Mode = ReplaceWhole
			}
			p.Writers = append(p.Writers, func(n, attempts int) (found int, err error) {
				_, err = optimistic.Update(t.Context(), target, func(_ context.Context, last *map[string]int) error {
					found, (*last)[me] = (*last)[me], n
					return nil
				}, &optimistic.UpdateOptions{Attempts: attempts, Elapsed: -1, SendOptions: optimistic.SendOptions{NoLineage: w.noLineage}})
				return found, err
			})
		}
	}
	return p.Run()
}

func TestNoEntityIsChangedTwice(t *testing.T) {
	each := 120 / min(optest.RaceScale, 15)
	if testing.Short() {
		each = min(each, 20)
	}
	all := optest.Holds(t, 2, func(t *testing.T, seed uint64) optest.Verdicts {
		return entityWorkload{rows: 8, writers: 4, operations: each, merges: seed%2 == 0}.play(t, seed)
	})
	if all.Conflict == 0 || all.Success < all.Operations*3/4 {
		t.Errorf("the workload is too tame, or too wild: %+v", all)
	}
}

func TestThePropertyOfEntitiesConvictsALoopWithoutLineage(t *testing.T) {
	optest.Convicts(t, entityWorkload{rows: 2, writers: 4, operations: 60, noLineage: true, merges: true}.play)
}

// entityHistory is a history of an entity. With dropIfMatch the condition is lost on the way.
func entityHistory(dropIfMatch bool) optest.Played {
	return optest.Played{Changes: history.Add, Match: aztest.Op("Merge Entity"), Make: func(t *testing.T, s *aztest.Service) func() optest.Does {
		optest.Insert(t, s.Table("orders"), "r", `{"n":0}`)
		return func() optest.Does {
			target := NewEntity[optest.Counter](s.Table("orders"), "p", "r")
			if dropIfMatch {
				target.Client = tableVia(t, s, "orders", optest.DropCondition{})
			}
			return optest.Counting(target)
		}
	}}
}

func TestHistoriesOfEntitiesAreLinearizable(t *testing.T) {
	histories := 40
	if testing.Short() {
		histories = 10
	}
	entityHistory(false).Explained(t, histories)
}

func TestTheJudgeConvictsAnEntityWithoutCondition(t *testing.T) { entityHistory(true).Convicted(t) }

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
