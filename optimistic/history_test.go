package optimistic_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/anishathalye/porcupine"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

var registerModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, in, out any) (bool, any) {
		s, i, o := state.(int), in.(optest.Op), out.(optest.Outcome)
		switch {
		case i.Read:
			return o.Value == s, s
		case o.Refused:
			return true, s
		default:
			return true, i.Set
		}
	},
}

// history runs a few clients on one blob under faults and returns what they were told. dropIfMatch plants the bug that
// the judge must convict: the condition is lost on the way.
func history(t *testing.T, seed uint64, register, dropIfMatch bool) []porcupine.Operation {
	var r optest.Recorder
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(seed, 7))
		s := aztest.New(&aztest.Options{Seed: seed, Latency: func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(1+rng.IntN(5_000_000)) * time.Nanosecond
		}})
		s.BlockBlob("box", "n.json")
		if _, err := optimistic.Create(t.Context(), blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), optest.Counter{}, nil); err != nil {
			t.Fatal(err)
		}
		commit := aztest.Op("Put Blob")
		s.SetFaults(
			aztest.Fault{Kind: aztest.LoseAnswer, Match: commit, Probability: 0.1},
			aztest.Fault{Kind: aztest.FailAfterCommit, Match: commit, Probability: 0.05},
			aztest.Fault{Kind: aztest.DelayCommit, Match: commit, Probability: 0.05, Delay: 100 * time.Millisecond},
			aztest.Fault{Kind: aztest.AnswerTwice, Match: commit, Probability: 0.05},
		)
		var wg sync.WaitGroup
		for c := range 4 {
			wg.Go(func() {
				target := blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
				if dropIfMatch {
					target = blobs.NewJSON[optest.Counter](unconditional(t, s))
				}
				ctx := context.Background()
				for n := range 8 {
					in := optest.Op{Add: 1, Set: 1 + c*100 + n, Read: (n+c)%4 == 3}
					err := r.Do(c, in, func() (optest.Outcome, error) {
						if in.Read {
							v, err := optimistic.Read(ctx, target, nil)
							if err != nil {
								return optest.Outcome{}, err
							}
							return optest.Outcome{Value: v.Value.N}, nil
						}
						_, err := optimistic.Update(ctx, target, func(_ context.Context, v *optest.Counter) error {
							if v.N++; register {
								v.N = in.Set
							}
							return nil
						}, &optimistic.UpdateOptions{Attempts: 6})
						return optest.Outcome{}, err
					})
					if err != nil {
						t.Errorf("client %d: %v", c, err)
					}
				}
			})
		}
		wg.Wait()
		s.SetFaults()
		s.Flush()
		_ = r.Do(99, optest.Op{Read: true}, func() (optest.Outcome, error) {
			v, err := optimistic.Read(t.Context(), blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), nil)
			if err != nil {
				return optest.Outcome{}, err
			}
			return optest.Outcome{Value: v.Value.N}, nil
		})
	})
	return r.Ops
}

// unconditional returns a client whose pipeline takes the condition off every write.
func unconditional(t *testing.T, s *aztest.Service) *blockblob.Client {
	t.Helper()
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	opts := s.ClientOptions()
	opts.PerCallPolicies = append(opts.PerCallPolicies, optest.DropCondition{})
	client, err := blockblob.NewClientWithSharedKeyCredential(s.BlobURL()+"/box/n.json", credential, &blockblob.ClientOptions{ClientOptions: opts})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestHistoriesAreLinearizable lets porcupine judge what clients were told under faults.
func TestHistoriesAreLinearizable(t *testing.T) {
	for name, register := range map[string]bool{"counter": false, "register": true} {
		t.Run(name, func(t *testing.T) {
			model := optest.CounterModel
			if register {
				model = registerModel
			}
			open := 0
			for n := range uint64(200) {
				seed := *optest.FirstSeed + n
				ops := history(t, seed, register, false)
				for _, o := range ops {
					if o.Return == 1<<60 {
						open++
					}
				}
				if verdict := porcupine.CheckOperationsTimeout(model, ops, 20*time.Second); verdict != porcupine.Ok {
					t.Errorf("seed %d: %v\n%s", seed, verdict, optest.Told(ops))
				}
			}
			t.Logf("200 histories, %d operations with an unknown outcome", open)
		})
	}
}

// TestTheJudgeConvictsALostCondition plants the bug that the judge is there for.
func TestTheJudgeConvictsALostCondition(t *testing.T) {
	convicted := 0
	const histories = 20
	for seed := range uint64(histories) {
		if porcupine.CheckOperationsTimeout(optest.CounterModel, history(t, seed, false, true), 20*time.Second) == porcupine.Illegal {
			convicted++
		}
	}
	if convicted < histories*9/10 {
		t.Errorf("%d of %d histories without If-Match were convicted", convicted, histories)
	}
}
