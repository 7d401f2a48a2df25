package optimistic_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
)

// TestALastLookDoesNotStandInLine: while requests to a busy blob waited for their turns, the look of a caller whose context
// had ended waited behind all of them, for longer than Grace, so that the outcome was unknown though the proof was there.
func TestALastLookDoesNotStandInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":1}`)
		target := blobs.NewJSON[optest.Counter](client)
		once := &optimistic.ReadOptions{SendOptions: optimistic.SendOptions{Tries: 1}}
		for n := range 24 { // every other request is refused, so that a rate of a few a second is set
			s.SetFaults()
			if n%2 == 0 {
				s.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op("Get Blob"), Count: 1})
			}
			_, _ = optimistic.Read(t.Context(), target, once)
			bubble.Sleep(50 * time.Millisecond)
		}
		bubble.Sleep(time.Second) // the next turn is free
		s.Reset()
		s.SetFaults(
			aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob"), Count: 1},
			aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op("Put Blob"), Count: 1},
		)
		ctx, cancel := context.WithCancel(retry.WithRandom(t.Context(), func() float64 { return 0.5 }))
		crowd, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		time.AfterFunc(time.Millisecond, func() {
			for range 200 {
				wg.Go(func() { _, _ = optimistic.Read(crowd, target, nil) })
			}
		})
		time.AfterFunc(150*time.Millisecond, cancel)
		res, err := optimistic.Update(ctx, target, optest.Increment, nil)
		if err != nil || res.Resolved != 1 {
			t.Errorf("%+v, %v: want a success that a look has proved\n%v", res, err, s.Log())
		}
		leave()
		wg.Wait()
	})
}
