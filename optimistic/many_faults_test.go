package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
)

// manyFaults is a network that loses a fifth of the responses to writes and delivers a tenth of the writes twice: at
// once, after the first response was lost on the way, or much later.
func manyFaults() []aztest.Fault {
	return []aztest.Fault{
		{Kind: aztest.AnswerTwice, Match: aztest.Writes, Probability: 0.04},
		{Kind: aztest.AnswerTwice, Match: aztest.Writes, Probability: 0.02, Delay: 30 * time.Millisecond},
		{Kind: aztest.RepeatAtOnce, Match: aztest.Writes, Probability: 0.02},
		{Kind: aztest.RepeatLater, Match: aztest.Writes, Probability: 0.02, Delay: 100 * time.Millisecond},
		{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.2},
	}
}

// tally is a value that shows who changed it how often.
type tally struct {
	Of map[string]int `json:"of"`
}

// tallied are the ways to count operation me+n in a shared resource: whether it was applied shows in the resource.
var tallied = map[string]func(s *aztest.Service) func(ctx context.Context, key string) (optimistic.Result, error){
	"blob": func(s *aztest.Service) func(context.Context, string) (optimistic.Result, error) {
		target := blobs.NewJSON[tally](s.BlockBlob("box", "tally"))
		return func(ctx context.Context, key string) (optimistic.Result, error) {
			return optimistic.Update(ctx, target, count1(key), &optimistic.UpdateOptions{Create: true, Attempts: -1, Elapsed: -1})
		}
	},
	"document": func(s *aztest.Service) func(context.Context, string) (optimistic.Result, error) {
		d, err := optimistic.NewDocument(blobs.NewJSON[tally](s.BlockBlob("box", "tally")), &optimistic.DocumentOptions{Update: optimistic.UpdateOptions{Create: true, Attempts: -1, Elapsed: -1}})
		return func(ctx context.Context, key string) (optimistic.Result, error) {
			if err != nil {
				return optimistic.Result{}, err
			}
			return d.Update(ctx, count1(key))
		}
	},
	"entity": func(s *aztest.Service) func(context.Context, string) (optimistic.Result, error) {
		target := tables.NewEntity[map[string]any](s.Table("t"), "p", "tally")
		return func(ctx context.Context, key string) (optimistic.Result, error) {
			return optimistic.Update(ctx, target, func(_ context.Context, m *map[string]any) error {
				n, _ := (*m)[key].(int32)
				(*m)[key] = n + 1
				return nil
			}, &optimistic.UpdateOptions{Create: true, Attempts: -1, Elapsed: -1})
		}
	},
	"transaction": func(s *aztest.Service) func(context.Context, string) (optimistic.Result, error) {
		table := s.Table("t")
		return func(ctx context.Context, key string) (optimistic.Result, error) {
			res, err := tables.Transact(ctx, table, "p", func(ctx context.Context, tx *tables.Tx) error {
				for _, row := range []string{"tally", "twin"} {
					m := map[string]any{}
					if _, err := tx.Get(ctx, row, &m); err != nil {
						return err
					}
					n, _ := m[key].(int32)
					if err := tx.Put(row, withCount(m, key, n+1)); err != nil {
						return err
					}
				}
				return nil
			}, &tables.TransactOptions{Attempts: -1, Elapsed: -1})
			return res.Result, err
		}
	},
}

func count1(key string) func(context.Context, *tally) error {
	return func(_ context.Context, v *tally) error {
		if v.Of == nil {
			v.Of = map[string]int{}
		}
		v.Of[key]++
		return nil
	}
}

func withCount(m map[string]any, key string, n int32) map[string]any {
	for _, name := range []string{"PartitionKey", "RowKey", "Timestamp"} {
		delete(m, name)
	}
	m[key] = n
	return m
}

func readTally(t *testing.T, kind string, s *aztest.Service) map[string]int {
	t.Helper()
	if kind == "blob" || kind == "document" {
		v, err := optimistic.Read(t.Context(), blobs.NewJSON[tally](s.BlockBlob("box", "tally")), nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.Value.Of
	}
	v, err := optimistic.Read(t.Context(), tables.NewEntity[map[string]any](s.Table("t"), "p", "tally"), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for key, n := range v.Value {
		if i, ok := n.(int32); ok {
			out[key] = int(i)
		}
	}
	return out
}

// TestNothingIsAppliedTwiceUnderManyFaults: every operation counts under a key of its own, so that its effect shows.
func TestNothingIsAppliedTwiceUnderManyFaults(t *testing.T) {
	for kind, open := range tallied {
		crowds, operations := []int{12, 32}, 160 // an entity has room for 250 properties
		if testing.Short() {
			crowds, operations = crowds[:1], 96
		}
		for _, clients := range crowds {
			t.Run(fmt.Sprintf("%s, %d clients", kind, clients), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(&aztest.Options{Seed: *optest.FirstSeed + uint64(clients), Latency: optest.Latencies(int64(clients))})
					s.Container("box")
					s.SetFaults(manyFaults()...)
					each := min(max(2, operations/clients/optest.RaceScale), operations/clients)
					outcomes := map[string]error{}
					var mu sync.Mutex
					var wg sync.WaitGroup
					for i := range clients {
						wg.Go(func() {
							change := open(s)
							for n := range each {
								key := fmt.Sprintf("k%dx%d", i, n)
								_, err := change(context.Background(), key)
								mu.Lock()
								outcomes[key] = err
								mu.Unlock()
							}
						})
					}
					wg.Wait()
					s.SetFaults()
					s.Flush()
					found, unknown := readTally(t, kind, s), 0
					for key, err := range outcomes {
						switch n := found[key]; {
						case errors.Is(err, optimistic.ErrOutcomeUnknown):
							if unknown++; n > 1 {
								t.Errorf("%s: unknown, and applied %d times", key, n)
							}
						case err == nil && n != 1, err != nil && n != 0:
							t.Errorf("%s: %v, and applied %d times", key, err, n)
						case err != nil && !errors.Is(err, optimistic.ErrConflict):
							t.Errorf("%s: %v", key, err)
						}
					}
					t.Logf("%d operations, %d unknown, %d requests", len(outcomes), unknown, s.Requests())
					if unknown*50 > len(outcomes) {
						t.Errorf("%d of %d are unknown", unknown, len(outcomes))
					}
				})
			})
		}
	}
}
