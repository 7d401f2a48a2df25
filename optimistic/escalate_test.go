package optimistic

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAnEscalatedUpdateWins: a rival is faster every time, until the blob is leased.
func TestAnEscalatedUpdateWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := quiet(t, `{"n":0}`)
		refused := 0
		res, err := Update(t.Context(), JSONBlob[counter](client), func(_ context.Context, c *counter) error {
			_, err := Update(context.Background(), JSONBlob[counter](client), increment, nil)
			if azerr.Classify(err).Kind == azerr.Held {
				refused++
			} else if err != nil {
				t.Error(err)
			}
			c.N++
			return nil
		}, &UpdateOptions{EscalateAfter: 3, Attempts: 10})
		if err != nil || res.Conflicts != 3 || refused != 1 {
			t.Fatalf("Update = %+v, %v; the rival was refused %d times", res, err, refused)
		}
		if got := count(t, client); got != 4 {
			t.Errorf("n = %d, want 4", got)
		}
		props, err := client.GetProperties(t.Context(), nil)
		if err != nil || string(*props.LeaseState) != "available" {
			t.Errorf("the lease is %v, %v; want it given back", *props.LeaseState, err)
		}
		_ = s
	})
}

// TestAnEscalationSurvivesEveryFault and leaves no lease behind.
func TestAnEscalationSurvivesEveryFault(t *testing.T) {
	for _, op := range []string{"Acquire Blob Lease", "Release Blob Lease", "Put Blob"} {
		for name, fault := range every(aztest.Op(op)) {
			t.Run(op+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
					client := s.BlockBlob("box", "n.json")
					put(t, client, `{"n":0}`)
					s.SetFaults(fault)
					var wg sync.WaitGroup
					for range 4 {
						wg.Go(func() {
							target := JSONBlob[counter](s.BlockBlob("box", "n.json"))
							for range 5 {
								if _, err := Update(t.Context(), target, increment, &UpdateOptions{Attempts: -1, Elapsed: -1, EscalateAfter: 1}); err != nil {
									t.Error(err)
								}
							}
						})
					}
					wg.Wait()
					s.SetFaults()
					if fault.Kind != aztest.DelayCommit {
						s.Flush()
					}
					if got := count(t, client); got != 20 {
						t.Errorf("n = %d, want 20", got)
					}
				})
			})
		}
	}
}

func TestACancelledEscalationGivesTheLeaseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return time.Second }})
		client := s.BlockBlob("box", "n.json")
		put(t, client, `{"n":0}`)
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("gave up")
		s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: func(r *aztest.Request) bool {
			if r.Op == "Acquire Blob Lease" {
				time.AfterFunc(700*time.Millisecond, func() { cancel(reason) }) // carried out, not answered
			}
			return false
		}})
		_, err := Update(ctx, JSONBlob[counter](client), func(_ context.Context, c *counter) error {
			put(t, client, `{"n":5}`)
			c.N++
			return nil
		}, &UpdateOptions{EscalateAfter: 1, Sending: Sending{TrustConflicts: true}})
		if !errors.Is(err, reason) {
			t.Errorf("err = %v", err)
		}
		props, err := client.GetProperties(t.Context(), nil)
		if err != nil || string(*props.LeaseState) != "available" {
			t.Errorf("the lease is %v, %v\n%v", *props.LeaseState, err, s.Log())
		}
	})
}
