package optimistic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/anishathalye/porcupine"

	"github.com/azconc/azconc/pkg/aztest"
)

// op is what a client did, for the judge. Models follow below.
type op struct {
	add  int // of a counter
	set  int // of a register
	read bool
}

// outcome is what the client was told.
type outcome struct {
	value   int  // of a read
	refused bool // a conflict: it had no effect
}

// counterModel is a counter whose additions either take effect once or, when refused, not at all. An operation with an
// unknown outcome is given no end by the recorder: it may take effect at any time, or, as far as the judge can see,
// after everything else.
var counterModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, in, out any) (bool, any) {
		s, i, o := state.(int), in.(op), out.(outcome)
		switch {
		case i.read:
			return o.value == s, s
		case o.refused:
			return true, s
		default:
			return true, s + i.add
		}
	},
}

var registerModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, in, out any) (bool, any) {
		s, i, o := state.(int), in.(op), out.(outcome)
		switch {
		case i.read:
			return o.value == s, s
		case o.refused:
			return true, s
		default:
			return true, i.set
		}
	},
}

// recorder collects a history. Time stands still in a bubble between two waits, so the clock is a counter.
type recorder struct {
	clock atomic.Int64
	mu    sync.Mutex
	ops   []porcupine.Operation
}

func (r *recorder) do(client int, in op, run func() (outcome, error)) error {
	call := r.clock.Add(1)
	out, err := run()
	end := r.clock.Add(1)
	switch {
	case errors.Is(err, ErrOutcomeUnknown):
		end = 1 << 60
	case errors.Is(err, ErrConflict):
		out.refused = true
	case err != nil:
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
	return nil
}

// history runs a few clients on one blob under faults and returns what they were told. dropIfMatch plants the bug that
// the judge must convict: the condition is lost on the way.
func history(t *testing.T, seed uint64, register, dropIfMatch bool) []porcupine.Operation {
	var r recorder
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(seed, 7))
		s := aztest.New(&aztest.Options{Seed: seed, Latency: func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(1+rng.IntN(5_000_000)) * time.Nanosecond
		}})
		s.BlockBlob("box", "n.json")
		if _, err := Create(t.Context(), JSONBlob[counter](s.BlockBlob("box", "n.json")), counter{}, nil); err != nil {
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
				target := JSONBlob[counter](s.BlockBlob("box", "n.json"))
				if dropIfMatch {
					target = JSONBlob[counter](unconditional(t, s))
				}
				ctx := context.Background()
				for n := range 8 {
					in := op{add: 1, set: 1 + c*100 + n, read: (n+c)%4 == 3}
					err := r.do(c, in, func() (outcome, error) {
						if in.read {
							v, err := Read(ctx, target, nil)
							if err != nil {
								return outcome{}, err
							}
							return outcome{value: v.Value.N}, nil
						}
						_, err := Update(ctx, target, func(_ context.Context, v *counter) error {
							if v.N++; register {
								v.N = in.set
							}
							return nil
						}, &UpdateOptions{Attempts: 6})
						return outcome{}, err
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
		_ = r.do(99, op{read: true}, func() (outcome, error) {
			v, err := Read(t.Context(), JSONBlob[counter](s.BlockBlob("box", "n.json")), nil)
			if err != nil {
				return outcome{}, err
			}
			return outcome{value: v.Value.N}, nil
		})
	})
	return r.ops
}

// unconditional returns a client whose pipeline takes the condition off every write.
func unconditional(t *testing.T, s *aztest.Service) *blockblob.Client {
	t.Helper()
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	opts := s.ClientOptions()
	opts.PerCallPolicies = append(opts.PerCallPolicies, dropCondition{})
	client, err := blockblob.NewClientWithSharedKeyCredential(s.BlobURL()+"/box/n.json", credential, &blockblob.ClientOptions{ClientOptions: opts})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

type dropCondition struct{}

func (dropCondition) Do(r *policy.Request) (*http.Response, error) {
	for name := range r.Raw().Header {
		if strings.EqualFold(name, "If-Match") {
			delete(r.Raw().Header, name)
		}
	}
	return r.Next()
}

// TestHistoriesAreLinearizable lets porcupine judge what clients were told under faults.
func TestHistoriesAreLinearizable(t *testing.T) {
	for name, register := range map[string]bool{"counter": false, "register": true} {
		t.Run(name, func(t *testing.T) {
			model := counterModel
			if register {
				model = registerModel
			}
			open := 0
			for n := range uint64(200) {
				seed := *firstSeed + n
				ops := history(t, seed, register, false)
				for _, o := range ops {
					if o.Return == 1<<60 {
						open++
					}
				}
				if verdict := porcupine.CheckOperationsTimeout(model, ops, 20*time.Second); verdict != porcupine.Ok {
					t.Errorf("seed %d: %v\n%s", seed, verdict, told(ops))
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
		if porcupine.CheckOperationsTimeout(counterModel, history(t, seed, false, true), 20*time.Second) == porcupine.Illegal {
			convicted++
		}
	}
	if convicted < histories*9/10 {
		t.Errorf("%d of %d histories without If-Match were convicted", convicted, histories)
	}
}

func told(ops []porcupine.Operation) string {
	var b strings.Builder
	for _, o := range ops {
		fmt.Fprintf(&b, "%3d [%d, %d] %+v -> %+v\n", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	return b.String()
}
