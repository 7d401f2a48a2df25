package optest

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/history"
)

// Does carries out a call of a client of a counter, and returns what a read has read.
type Does func(ctx context.Context, c history.Call) (int, error)

// Counting is Does for a target.
func Counting(target optimistic.Target[Counter]) Does {
	return func(ctx context.Context, c history.Call) (int, error) {
		if c.Kind == history.Read {
			v, err := optimistic.Read(ctx, target, nil)
			return v.Value.N, err
		}
		return 0, ErrorOf(optimistic.Update(ctx, target, func(_ context.Context, v *Counter) error {
			if v.N += c.Value; c.Kind == history.Set {
				v.N = c.Value
			}
			return nil
		}, &optimistic.UpdateOptions{Attempts: 6}))
	}
}

// Played is a history: a few clients of a counter, which Make makes and then opens for each of them, call it under faults of the requests
// that match.
type Played struct {
	Changes history.Kind // what the calls do that do not read
	Match   func(*aztest.Request) bool
	Make    func(t *testing.T, s *aztest.Service) (open func() Does)
}

func (p Played) play(t *testing.T, seed uint64) (calls []history.Call) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Seed: seed, Latency: Latencies(int64(seed))})
		open := p.Make(t, s)
		s.SetFaults(
			aztest.Fault{Kind: aztest.LoseAnswer, Match: p.Match, Probability: 0.1},
			aztest.Fault{Kind: aztest.FailAfterCommit, Match: p.Match, Probability: 0.05},
			aztest.Fault{Kind: aztest.DelayCommit, Match: p.Match, Probability: 0.05, Delay: 100 * time.Millisecond},
			aztest.Fault{Kind: aztest.AnswerTwice, Match: p.Match, Probability: 0.05},
		)
		var clock atomic.Int64 // time stands still in a bubble between two waits
		var mu sync.Mutex
		record := func(c history.Call, do Does) {
			c.From = clock.Add(1)
			value, err := do(t.Context(), c)
			c.To = clock.Add(1)
			switch {
			case errors.Is(err, optimistic.ErrOutcomeUnknown):
				c.To = history.Open
			case errors.Is(err, optimistic.ErrConflict):
				c.Refused = true
			case err != nil:
				t.Errorf("client %d: %v", c.Client, err)
			case c.Kind == history.Read:
				c.Value = value
			}
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, c)
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				do := open()
				for n := range 8 {
					c := history.Call{Client: i, Kind: p.Changes, Value: 1}
					if (n+i)%4 == 3 {
						c.Kind = history.Read
					} else if p.Changes == history.Set {
						c.Value = 1 + i*100 + n
					}
					record(c, do)
				}
			})
		}
		wg.Wait()
		s.SetFaults()
		s.Flush()
		record(history.Call{Client: 99, Kind: history.Read}, open())
	})
	return calls
}

// judgeTime is more than the judge needs for one of these histories.
const judgeTime = 20 * time.Second

// Explained judges so many histories, and a few with the race detector: an order of the calls has to explain their results.
func (p Played) Explained(t *testing.T, histories int) {
	t.Helper()
	histories = max(3, histories/RaceScale)
	open := 0
	for n := range uint64(histories) {
		calls := p.play(t, *FirstSeed+n)
		for _, c := range calls {
			if c.To == history.Open {
				open++
			}
		}
		if err := history.Linearizable(calls, judgeTime); err != nil {
			t.Errorf("seed %d: %v", *FirstSeed+n, err)
		}
	}
	t.Logf("%d histories, %d calls with an unknown outcome", histories, open)
}

// Convicted judges histories with a mistake: no order explains most of them.
func (p Played) Convicted(t *testing.T) {
	t.Helper()
	histories := 20 / min(RaceScale, 2)
	convicted := 0
	for seed := range uint64(histories) {
		if err := history.Linearizable(p.play(t, seed), judgeTime); err != nil && !errors.Is(err, history.ErrUndecided) {
			convicted++
		}
	}
	if convicted < histories*9/10 {
		t.Errorf("%d of %d histories were convicted", convicted, histories)
	}
}

// DropCondition is a policy that removes If-Match and x-ms-if-tags from every request: a planted bug.
type DropCondition struct{}

// Do implements policy.Policy.
func (DropCondition) Do(r *policy.Request) (*http.Response, error) {
	for name := range r.Raw().Header {
		if strings.EqualFold(name, "If-Match") || strings.EqualFold(name, "X-Ms-If-Tags") {
			delete(r.Raw().Header, name)
		}
	}
	return r.Next()
}

// FirstSeed varies the faults of the long tests: go test ./optimistic -args -seed 1000.
var FirstSeed = flag.Uint64("seed", 0, "first seed of the long tests")
