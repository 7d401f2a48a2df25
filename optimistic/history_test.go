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

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/history"
)

// played runs a few clients on one blob under faults and returns their calls and results. dropIfMatch plants the bug
// that the judge must convict: the condition is lost on the way.
func played(t *testing.T, seed uint64, register, dropIfMatch bool) []history.Call {
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
					in := history.Call{Client: c, Kind: history.Add, Value: 1}
					switch {
					case (n+c)%4 == 3:
						in.Kind = history.Read
					case register:
						in.Kind, in.Value = history.Set, 1+c*100+n
					}
					err := r.Do(in, func() (int, error) {
						if in.Kind == history.Read {
							v, err := optimistic.Read(ctx, target, nil)
							if err != nil {
								return 0, err
							}
							return v.Value.N, nil
						}
						_, err := optimistic.Update(ctx, target, func(_ context.Context, v *optest.Counter) error {
							if v.N++; register {
								v.N = in.Value
							}
							return nil
						}, &optimistic.UpdateOptions{Attempts: 6})
						return 0, err
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
		if err := r.Do(history.Call{Client: 99, Kind: history.Read}, func() (int, error) {
			v, err := optimistic.Read(t.Context(), blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json")), nil)
			if err != nil {
				return 0, err
			}
			return v.Value.N, nil
		}); err != nil {
			t.Error(err)
		}
	})
	return r.Calls
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

// TestHistoriesAreLinearizable judges the results of clients under faults.
func TestHistoriesAreLinearizable(t *testing.T) {
	for name, register := range map[string]bool{"counter": false, "register": true} {
		t.Run(name, func(t *testing.T) {
			open, histories := 0, uint64(200)
			if testing.Short() {
				histories = 15
			}
			for n := range histories {
				seed := *optest.FirstSeed + n
				calls := played(t, seed, register, false)
				for _, c := range calls {
					if c.To == history.Open {
						open++
					}
				}
				if err := history.Linearizable(calls, optest.JudgeTime); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
			t.Logf("%d histories, %d operations with an unknown outcome", histories, open)
		})
	}
}

// TestTheJudgeConvictsALostCondition plants the bug that the judge is there for.
func TestTheJudgeConvictsALostCondition(t *testing.T) {
	convicted := 0
	const histories = 20
	for seed := range uint64(histories) {
		if optest.Convicted(played(t, seed, false, true)) {
			convicted++
		}
	}
	if convicted < histories*9/10 {
		t.Errorf("%d of %d histories without If-Match were convicted", convicted, histories)
	}
}
